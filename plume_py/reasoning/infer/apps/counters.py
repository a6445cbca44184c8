"""Two ways to count: read and write back, or increment in place. Table ``event`` holds the true number."""

from plume_py.reasoning.infer.embed import App, Id, Int, by

app = App("counters")
counter = app.table("counter", key="id", id=Id, value=Int)
event = app.table("event", counter=Id)


@app.txn(i=Id)
def read_and_write(i):
    mine = counter.get(id=i)
    counter.update(by(id=i), value=mine.value + 1)
    event.insert(counter=i)


@app.txn(i=Id)
def in_place(i):
    counter.get(id=i)
    counter.update(by(id=i), value=lambda row: row.value + 1)
    event.insert(counter=i)


@app.invariant
def counted():
    """A counter shows how many events it had."""
    return counter.all(lambda row: row.value == event.count(counter=row.id))


app.explore(rows={"event": 2})
app.populate(counter=[(1, 0), (2, 0)])
