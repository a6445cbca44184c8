"""TPC-C's five transactions, simplified as in the paper (Alone Together), and six of its consistency conditions.

I1 to I4 are the paper's. They do not constrain delivery, so two more conditions of TPC-C are added: I5 (its condition
12) and I6 (its condition 5). Orders have no declared primary key, because a database would reject duplicates of it.
"""

from plume_py.reasoning.infer.embed import App, Id, Int, ListOf, by, for_each, ite, require

app = App("tpcc")
warehouse = app.table("warehouse", key="w_id", w_id=Id, w_ytd=Int)
district = app.table("district", key="d_id", d_id=Id, d_w_id=Id, d_ytd=Int, d_next_o_id=Int)
customer = app.table("customer", key="c_id", c_id=Id, c_balance=Int, c_ytd_payment=Int)
stock = app.table("stock", key="s_i_id", s_i_id=Id, s_quantity=Int)
orders = app.table("orders", o_d_id=Id, o_id=Int, o_c_id=Id, o_ol_cnt=Int, o_carrier_id=Int)
new_orders = app.table("new_orders", no_d_id=Id, no_o_id=Int)
order_line = app.table("order_line", ol_d_id=Id, ol_o_id=Int, ol_i_id=Id, ol_quantity=Int, ol_amount=Int)


@app.txn(d=Id, c=Id, items=ListOf(item=Id, quantity=Int, amount=Int))
def new_order(d, c, items):
    home = district.get(d_id=d)
    customer.get(c_id=c)
    district.update(by(d_id=d), d_next_o_id=lambda row: row.d_next_o_id + 1)
    number = home.d_next_o_id
    orders.insert(o_d_id=d, o_id=number, o_c_id=c, o_ol_cnt=items.size, o_carrier_id=0)
    new_orders.insert(no_d_id=d, no_o_id=number)
    with for_each(items) as line:
        left = stock.get(s_i_id=line.item)
        rest = left.s_quantity - line.quantity
        stock.update(by(s_i_id=line.item), s_quantity=ite(rest >= 10, rest, rest + 91))
        order_line.insert(
            ol_d_id=d, ol_o_id=number, ol_i_id=line.item, ol_quantity=line.quantity, ol_amount=line.amount
        )


@app.txn(lambda d, carrier: carrier > 0, d=Id, carrier=Int)
def delivery(d, carrier):
    oldest = new_orders.min(lambda row: row.no_o_id, no_d_id=d)
    require(oldest > 0)
    order = orders.get(o_d_id=d, o_id=oldest)
    new_orders.delete(no_d_id=d, no_o_id=oldest)
    orders.update(by(o_d_id=d, o_id=oldest), o_carrier_id=carrier)
    total = order_line.sum(lambda row: row.ol_amount, ol_d_id=d, ol_o_id=oldest)
    customer.update(by(c_id=order.o_c_id), c_balance=lambda row: row.c_balance + total)


@app.txn(d=Id, c=Id, amount=Int)
def payment(d, c, amount):
    home = district.get(d_id=d)
    warehouse.get(w_id=home.d_w_id)
    warehouse.update(by(w_id=home.d_w_id), w_ytd=lambda row: row.w_ytd + amount)
    district.update(by(d_id=d), d_ytd=lambda row: row.d_ytd + amount)
    customer.update(
        by(c_id=c),
        c_balance=lambda row: row.c_balance - amount,
        c_ytd_payment=lambda row: row.c_ytd_payment + amount,
    )


@app.txn(c=Id)
def order_status(c):
    customer.get(c_id=c)
    last = orders.max(lambda row: row.o_id, o_c_id=c)
    order_line.where(ol_o_id=last)


@app.txn(d=Id, threshold=Int)
def stock_level(d, threshold):
    home = district.get(d_id=d)
    stock.count(
        lambda row: (
            (row.s_quantity < threshold)
            & order_line.exists(
                lambda line: (line.ol_o_id >= home.d_next_o_id - 20) & (line.ol_i_id == row.s_i_id), ol_d_id=d
            )
        )
    )


@app.invariant
def I1():
    """What a warehouse took in is what its districts took in, and a district has its warehouse."""
    adds_up = warehouse.all(lambda row: row.w_ytd == district.sum(lambda other: other.d_ytd, d_w_id=row.w_id))
    return adds_up & district.refers("d_w_id", warehouse)


@app.invariant
def I2():
    """Order numbers are unique in a district, positive, and below its next number."""
    fresh = orders.all(
        lambda order: (order.o_id > 0) & district.exists(lambda row: order.o_id < row.d_next_o_id, d_id=order.o_d_id)
    )
    return orders.unique("o_d_id", "o_id") & fresh & district.all(lambda row: row.d_next_o_id > 0)


@app.invariant
def I3():
    """Numbers of new orders are unique in a district, positive, and below its next number."""
    fresh = new_orders.all(
        lambda new: (new.no_o_id > 0) & district.exists(lambda row: new.no_o_id < row.d_next_o_id, d_id=new.no_d_id)
    )
    return new_orders.unique("no_d_id", "no_o_id") & fresh


@app.invariant
def I4():
    """An order has as many lines as it says, and no line is of an order to come."""
    counted = orders.all(lambda order: order.o_ol_cnt == order_line.count(ol_d_id=order.o_d_id, ol_o_id=order.o_id))
    placed = order_line.all(lambda line: district.exists(lambda row: line.ol_o_id < row.d_next_o_id, d_id=line.ol_d_id))
    return counted & placed


@app.invariant
def I5():
    """A customer's balance and payments add up to the lines of the orders delivered to them."""

    def delivered(row):
        return orders.sum(
            lambda order: order_line.sum(lambda line: line.ol_amount, ol_d_id=order.o_d_id, ol_o_id=order.o_id),
            lambda order: (order.o_c_id == row.c_id) & (order.o_carrier_id > 0),
        )

    known = orders.refers("o_c_id", customer)
    return customer.all(lambda row: row.c_balance + row.c_ytd_payment == delivered(row)) & known


@app.invariant
def I6():
    """What is pending is an order without a carrier."""
    return new_orders.all(lambda new: orders.exists(o_d_id=new.no_d_id, o_id=new.no_o_id, o_carrier_id=0))


app.explore(
    rows={"warehouse": 1, "district": 1, "customer": 1, "stock": 1, "orders": 1, "new_orders": 1, "order_line": 1},
    warehouse__w_id=(1,),
    warehouse__w_ytd=(0, 1),
    district__d_id=(1,),
    district__d_w_id=(1,),
    district__d_ytd=(0, 1),
    district__d_next_o_id=(1, 2),
    customer__c_id=(1,),
    customer__c_balance=(0, 1),
    customer__c_ytd_payment=(0,),
    stock__s_i_id=(1,),
    stock__s_quantity=(20,),
    orders__o_d_id=(1,),
    orders__o_id=(1,),
    orders__o_c_id=(1,),
    orders__o_ol_cnt=(0, 1),
    orders__o_carrier_id=(0, 1),
    new_orders__no_d_id=(1,),
    new_orders__no_o_id=(1,),
    order_line__ol_d_id=(1,),
    order_line__ol_o_id=(1,),
    order_line__ol_i_id=(1,),
    order_line__ol_quantity=(1,),
    order_line__ol_amount=(1,),
    new_order__d=(1,),
    new_order__c=(1,),
    delivery__d=(1,),
    delivery__carrier=(1,),
    payment__d=(1,),
    payment__c=(1,),
    payment__amount=(1,),
    order_status__c=(1,),
    stock_level__d=(1,),
    stock_level__threshold=(30,),
    **{"new_order__items.item": (1,), "new_order__items.quantity": (1,), "new_order__items.amount": (1,)},
)
app.populate(
    warehouse=[(1, 0)],
    district=[(1, 1, 0, 1)],
    customer=[(1, 0, 0)],
    stock=[(1, 50)],
)
