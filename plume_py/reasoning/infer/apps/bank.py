"""Two accounts of one owner. Each may be overdrawn, but not their sum: the classic write skew."""

from plume_py.reasoning.infer.embed import App, Id, Int, by, require

app = App("bank")
account = app.table("account", key="id", id=Id, balance=Int)


@app.txn(lambda i, amount: amount > 0, i=Id, amount=Int)
def withdraw(i, amount):
    total = account.sum(lambda row: row.balance)
    require(total >= amount)
    account.update(by(id=i), balance=lambda row: row.balance - amount)


@app.txn(lambda i, amount: amount > 0, i=Id, amount=Int)
def deposit(i, amount):
    account.update(by(id=i), balance=lambda row: row.balance + amount)


@app.invariant
def not_overdrawn():
    """Together the accounts are not below zero."""
    return account.sum(lambda row: row.balance) >= 0


app.explore(account__balance=(-1, 0, 1), withdraw__amount=(1, 2), deposit__amount=(1, 2))
app.populate(account=[(1, 1), (2, 1)])
