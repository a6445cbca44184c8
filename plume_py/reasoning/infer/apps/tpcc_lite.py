"""TPC-C with one district, reduced to the columns that the invariants use: small enough to explore every state.

Three transactions remain of ``tpcc``, which follows the paper (Alone Together).

``delivered`` is not a condition of TPC-C. It adds a counter of deliveries: delivered and pending orders must add up to
all orders. For this purpose ``new_order`` writes back the next number that it read. I4 holds per order, as where the
paper explains it. Summed over a district, it would not notice two orders with one number.
"""

from plume_py.reasoning.infer.embed import App, Id, Int, ListOf, by, for_each, require

app = App("tpcc_lite")
warehouse = app.table("warehouse", key="w_id", w_id=Id, w_ytd=Int)
district = app.table("district", key="d_id", d_id=Id, d_ytd=Int, d_next_o_id=Int)
shipped = app.table("shipped", key="id", id=Id, total=Int)
orders = app.table("orders", o_id=Int, o_ol_cnt=Int)
new_orders = app.table("new_orders", no_o_id=Int)
order_line = app.table("order_line", ol_o_id=Int, ol_i_id=Id)


@app.txn(items=ListOf(item=Id))
def new_order(items):
    home = district.get(d_id=1)
    district.update(by(d_id=1), d_next_o_id=home.d_next_o_id + 1)
    orders.insert(o_id=home.d_next_o_id, o_ol_cnt=items.size)
    new_orders.insert(no_o_id=home.d_next_o_id)
    with for_each(items) as line:
        order_line.insert(ol_o_id=home.d_next_o_id, ol_i_id=line.item)


@app.txn(amount=Int)
def payment(amount):
    warehouse.get(w_id=1)
    district.get(d_id=1)
    warehouse.update(by(w_id=1), w_ytd=lambda row: row.w_ytd + amount)
    district.update(by(d_id=1), d_ytd=lambda row: row.d_ytd + amount)


@app.txn()
def delivery():
    shipped.get(id=1)
    oldest = new_orders.min(lambda row: row.no_o_id)
    require(oldest > 0)
    new_orders.delete(no_o_id=oldest)
    shipped.update(by(id=1), total=lambda row: row.total + 1)


@app.invariant
def I1():
    """What the warehouse took in is what its districts took in."""
    return warehouse.all(lambda row: row.w_ytd == district.sum(lambda other: other.d_ytd))


@app.invariant
def I2_I3():
    """Numbers of orders and of new orders are unique, and the next one is free."""
    fresh = district.all(
        lambda row: (
            orders.all(lambda order: (order.o_id > 0) & (order.o_id < row.d_next_o_id))
            & new_orders.all(lambda new: (new.no_o_id > 0) & (new.no_o_id < row.d_next_o_id))
            & order_line.all(lambda line: line.ol_o_id < row.d_next_o_id)
            & (row.d_next_o_id > 0)
        )
    )
    return orders.unique("o_id") & new_orders.unique("no_o_id") & fresh


@app.invariant
def I4():
    """An order has as many lines as it says."""
    return orders.all(lambda order: order.o_ol_cnt == order_line.count(ol_o_id=order.o_id))


@app.invariant
def delivered():
    """Delivered and pending orders are all that were placed."""
    return shipped.all(lambda row: district.all(lambda home: row.total + new_orders.count() == home.d_next_o_id - 1))


@app.enforce
def one_of_each():
    """There is one warehouse, one district and one counter."""
    return (
        warehouse.all(lambda row: row.w_id == 1)
        & district.all(lambda row: row.d_id == 1)
        & shipped.all(lambda row: row.id == 1)
    )


app.explore(
    rows={"warehouse": 1, "district": 1, "shipped": 1, "orders": 1, "new_orders": 1, "order_line": 1},
    warehouse__w_id=(1,),
    warehouse__w_ytd=(0, 1),
    district__d_id=(1,),
    district__d_ytd=(0, 1),
    district__d_next_o_id=(1, 2),
    shipped__id=(1,),
    shipped__total=(0, 1),
    orders__o_id=(1,),
    orders__o_ol_cnt=(0, 1),
    new_orders__no_o_id=(1,),
    order_line__ol_o_id=(1,),
    order_line__ol_i_id=(1,),
    payment__amount=(1,),
    **{"new_order__items.item": (1,)},
)
