"""Ids made by the application: one more than the greatest in use, or taken from a counter."""

from plume_py.reasoning.infer.embed import App, Id, Int, by

app = App("unique_ids")
ticket = app.table("ticket", number=Int)
invoice = app.table("invoice", number=Int)
counter = app.table("counter", key="id", id=Id, next=Int)


@app.txn()
def new_ticket():
    last = ticket.max(lambda row: row.number)
    ticket.insert(number=last + 1)


@app.txn()
def new_invoice():
    mine = counter.get(id=1)
    counter.update(by(id=1), next=mine.next + 1)
    invoice.insert(number=mine.next)


@app.invariant
def tickets():
    """No two tickets have the same number."""
    return ticket.unique("number")


@app.invariant
def invoices():
    """No two invoices have the same number, and the counter is ahead of all of them."""
    ahead = counter.all(lambda row: invoice.all(lambda other: other.number < row.next), id=1)
    return invoice.unique("number") & ahead


app.explore(rows={"counter": 1, "invoice": 1}, counter__id=(1,))
app.populate(counter=[(1, 1)])
