"""The three benchmarks that MixIso is measured with, and workloads drawn from templates.

The sets are those of MixIso's benchmark files, columns being cells: SmallBank has no payments there, TPC-C one row per
order and no ranges. The numbers of instances follow each program's share.
"""

import random

from plume_py.base.errors import InputError
from plume_py.reasoning.allocate.workload import Instance, Program, Workload, read, update, write

SMALLBANK = (
    Program("Balance", ("N",), (read("Account_C", "N"), read("Savings_B", "N"), read("Checking_B", "N")), share=0.2),
    Program("DepositChecking", ("N",), (read("Account_C", "N"), update("Checking_B", "N")), share=0.2),
    Program("TransactSavings", ("N",), (read("Account_C", "N"), update("Savings_B", "N")), share=0.2),
    Program(
        "Amalgamate",
        ("N1", "N2"),
        (
            read("Account_C", "N1"),
            read("Account_C", "N2"),
            update("Savings_B", "N1"),
            update("Checking_B", "N1"),
            update("Checking_B", "N2"),
        ),
        share=0.2,
    ),
    Program(
        "WriteCheck", ("N",), (read("Account_C", "N"), read("Savings_B", "N"), update("Checking_B", "N")), share=0.2
    ),
)

COURSEWARE = (
    Program("Register", ("SID",), (write("StudentSet_S", "SID"),), share=0.2),
    Program("AddCourse", ("CID",), (write("CourseSet_C", "CID"),), share=0.2),
    Program(
        "Enroll",
        ("SID", "CID"),
        (read("StudentSet_S", "SID"), read("CourseSet_C", "CID"), write("EnrollmentRelation_S", "SID", "CID")),
        share=0.2,
    ),
    Program(
        "RemoveCourse",
        ("SID", "CID"),
        (read("EnrollmentRelation_S", "SID", "CID"), update("CourseSet_C", "CID")),
        share=0.2,
    ),
    Program(
        "Query",
        ("SID", "CID"),
        (read("StudentSet_S", "SID"), read("CourseSet_C", "CID"), read("EnrollmentRelation_S", "SID", "CID")),
        share=0.2,
    ),
)

TPCC = (
    Program(
        "NewOrder",
        ("W", "D", "C", "O", "I"),
        (
            read("Warehouse_Inf", "W"),
            read("District_Inf", "W", "D"),
            update("District_N", "W", "D"),
            read("Customer_Inf", "W", "D", "C"),
            write("Order_C", "W", "D", "O"),
            write("Order_Sta", "W", "D", "O"),
            update("Stock_Qua", "W", "I"),
            write("OrderLine_I", "W", "D", "O"),
            write("OrderLine_Del", "W", "D", "O"),
            write("OrderLine_Qua", "W", "D", "O"),
        ),
        share=0.45,
    ),
    Program(
        "Payment",
        ("W", "D", "C"),
        (update("Warehouse_YTD", "W"), update("District_YTD", "W", "D"), update("Customer_Bal", "W", "D", "C")),
        share=0.43,
    ),
    Program(
        "OrderStatus",
        ("W", "D", "C", "O"),
        (
            read("Customer_Bal", "W", "D", "C"),
            read("Order_C", "W", "D", "O"),
            read("Order_Sta", "W", "D", "O"),
            read("OrderLine_I", "W", "D", "O"),
            read("OrderLine_Del", "W", "D", "O"),
            read("OrderLine_Qua", "W", "D", "O"),
        ),
        share=0.04,
    ),
    Program(
        "Delivery",
        ("W", "D", "C", "O"),
        (
            update("Order_Sta", "W", "D", "O"),
            update("OrderLine_Del", "W", "D", "O"),
            update("Customer_Bal", "W", "D", "C"),
        ),
        share=0.04,
    ),
    Program("StockLevel", ("W", "I"), (read("Stock_Qua", "W", "I"),), share=0.04),
)

BENCHMARKS = {"smallbank": SMALLBANK, "courseware": COURSEWARE, "tpcc": TPCC}


def draw(programs: tuple[Program, ...] | list[Program], instances: int, largest: int, seed: int) -> Workload:
    """So many ``instances``, divided by the shares, with parameters drawn from 1 to ``largest``."""
    rng = random.Random(seed)
    made: list[Instance] = []
    for program, count in zip(programs, _counts(programs, instances), strict=True):
        for i in range(1, count + 1):
            values = [rng.randint(1, largest) for _ in program.params]
            made.append(program(*values, name=f"{program.name}_{i}"))
    return Workload(made, programs=list(programs), source=f"{instances:,} instances drawn with seed {seed}")


def _counts(programs: tuple[Program, ...] | list[Program], instances: int) -> list[int]:
    """By share, or evenly; what rounding leaves goes to the first programs."""
    shares = [1 / len(programs) if program.share is None else program.share for program in programs]
    if not shares or sum(shares) <= 0:
        raise InputError("no program has a share of the instances", hint="give one of them a `percentage` above 0")
    counts = [int(instances * share / sum(shares) + 1e-9) for share in shares]
    for i in range(instances - sum(counts)):
        counts[i % len(counts)] += 1
    return counts
