"""Interest is computed from a balance that was read earlier and added to the current balance."""

from plume_py.reasoning.infer.embed import App, Id, Int, by

app = App("add_interest")
account = app.table("account", key="id", id=Id, balance=Int)


@app.txn(i=Id)
def add_interest(i):
    mine = account.get(id=i)
    interest = mine.balance * 2
    account.update(by(id=i), balance=lambda row: row.balance + interest)


@app.txn(lambda i, amount: amount > 0, i=Id, amount=Int)
def deposit(i, amount):
    account.update(by(id=i), balance=lambda row: row.balance + amount)


@app.invariant
def not_negative():
    """No account is below zero."""
    return account.all(lambda row: row.balance >= 0)


app.explore(deposit__amount=(1,))
app.populate(account=[(1, 0), (2, 1)])
