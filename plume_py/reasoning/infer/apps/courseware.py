"""Students enrol in courses of limited capacity.

The published listing of ``enroll`` does not read the student, and so violates I1 even when it runs alone. This version
reads the student.
"""

from plume_py.reasoning.infer.embed import App, Id, Int, by, if_

app = App("courseware")
student = app.table("student", key="s_id", s_id=Id)
course = app.table("course", key="c_id", c_id=Id, c_capacity=Int)
enrollment = app.table("enrollment", e_s_id=Id, e_c_id=Id)


@app.txn(s=Id)
def register(s):
    student.insert(s_id=s)


@app.txn(lambda c, capacity: capacity >= 0, c=Id, capacity=Int)
def add_course(c, capacity):
    course.insert(c_id=c, c_capacity=capacity)


@app.txn(s=Id, c=Id)
def enroll(s, c):
    student.get(s_id=s)
    chosen = course.get(c_id=c)
    already = enrollment.where(e_s_id=s, e_c_id=c)
    with if_((chosen.c_capacity > 0) & already.empty()):
        enrollment.insert(e_s_id=s, e_c_id=c)
        course.update(by(c_id=c), c_capacity=lambda row: row.c_capacity - 1)


@app.txn(c=Id)
def cancel_course(c):
    enrolled = enrollment.where(e_c_id=c)
    with if_(enrolled.empty()):
        course.delete(c_id=c)


@app.txn(s=Id)
def deregister(s):
    enrolled = enrollment.where(e_s_id=s)
    with if_(enrolled.empty()):
        student.delete(s_id=s)


@app.invariant
def I1():
    """An enrollment refers to a student and to a course."""
    return enrollment.refers("e_s_id", student) & enrollment.refers("e_c_id", course)


@app.invariant
def I2():
    """No course has less than no capacity."""
    return course.all(lambda row: row.c_capacity >= 0)


app.explore(rows={"enrollment": 2}, course__c_capacity=(0, 1), add_course__capacity=(1,))
app.populate(student=[(1,), (2,)], course=[(1, 1), (2, 1)])
