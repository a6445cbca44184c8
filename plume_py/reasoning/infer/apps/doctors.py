"""At least one doctor stays on call. A doctor may leave if another one is on call."""

from plume_py.reasoning.infer.embed import App, Bool, Id, by, require

app = App("doctors")
doctor = app.table("doctor", key="id", id=Id, on_call=Bool)


@app.txn(i=Id)
def leave(i):
    others = doctor.count(lambda row: row.on_call & (row.id != i))
    require(others >= 1)
    doctor.update(by(id=i), on_call=False)


@app.txn(i=Id)
def come(i):
    doctor.update(by(id=i), on_call=True)


@app.invariant
def someone_on_call():
    """Some doctor is on call."""
    return doctor.exists(on_call=True)


app.populate(doctor=[(1, True), (2, True)])
