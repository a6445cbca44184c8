"""Checking and savings balances in one row, each written from a balance that was read before."""

from plume_py.reasoning.infer.embed import App, Id, Int, by, require

app = App("savings")
account = app.table("account", key="id", id=Id, cbal=Int, sbal=Int)


@app.txn(lambda i, amount: amount >= 0, i=Id, amount=Int)
def withdraw(i, amount):
    mine = account.get(id=i)
    require(mine.cbal >= amount)
    account.update(by(id=i), cbal=mine.cbal - amount)


@app.txn(lambda i, amount: amount >= 0, i=Id, amount=Int)
def deposit(i, amount):
    mine = account.get(id=i)
    account.update(by(id=i), cbal=mine.cbal + amount)


@app.txn(lambda i, amount: amount >= 0, i=Id, amount=Int)
def save(i, amount):
    mine = account.get(id=i)
    require(mine.cbal >= amount)
    account.update(by(id=i), cbal=mine.cbal - amount, sbal=mine.sbal + amount)


@app.invariant
def not_negative():
    """Neither balance is below zero."""
    return account.all(lambda row: (row.cbal >= 0) & (row.sbal >= 0))


app.explore(
    rows={"account": 1},
    account__id=(1,),
    account__cbal=(0, 1, 2),
    account__sbal=(0, 1),
    withdraw__amount=(0, 1),
    deposit__amount=(1,),
    save__amount=(1,),
    withdraw__i=(1,),
    deposit__i=(1,),
    save__i=(1,),
)
app.populate(account=[(1, 2, 0)])
