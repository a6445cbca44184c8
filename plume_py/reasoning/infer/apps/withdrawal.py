"""Withdrawals from one account: the balance is read and, if it suffices, decreased in place."""

from plume_py.reasoning.infer.embed import App, Id, Int, by, require

app = App("withdrawal")
account = app.table("account", key="id", id=Id, balance=Int)


@app.txn(lambda i, amount: amount > 0, i=Id, amount=Int)
def withdraw(i, amount):
    mine = account.get(id=i)
    require(mine.balance >= amount)
    account.update(by(id=i), balance=lambda row: row.balance - amount)


@app.invariant
def not_negative():
    """No account is below zero."""
    return account.all(lambda row: row.balance >= 0)


app.explore(withdraw__amount=(1,))
app.populate(account=[(1, 1), (2, 1)])
