"""What the paper Alone Together says of each result, and what differs here: the words of its page."""

TITLE = "Alone Together: levels that keep an invariant"
INTRO = """\
What Kaki, Nagar, Najafzadeh and Jagannathan, *Alone Together: Compositional Reasoning and Inference for Weak
Isolation* (2018), measured with ACIDifier, beside `isocheck infer` ([infer.md](../infer.md)). The paper has one
table, a few sentences on times, and one experiment on servers; its examples are here, too."""

_TPCC = {"order_status": "RC", "stock_level": "RC", "payment": "RC"}
LEVELS: dict[str, dict[str, dict[str, str]]] = {
    "tpcc": {
        "postgresql": {"new_order": "SI", "delivery": "SI", **_TPCC},
        "mysql": {"new_order": "SER", "delivery": "SER", **_TPCC},
    },
    "courseware": {
        store: {"enroll": "SER", "deregister": "SER", "register": "RC", "add_course": "RC", "cancel_course": "RC"}
        for store in ("postgresql", "mysql")
    },
}
LEVELS["tpcc_lite"] = LEVELS["tpcc"]
PROGRAMS = (
    "courseware",
    "add_interest",
    "savings",
    "withdrawal",
    "bank",
    "doctors",
    "unique_ids",
    "counters",
    "tpcc_lite",
)
SERIAL = ("courseware", "bank", "withdrawal", "savings", "doctors", "counters")
SECONDS = 0.5

ABOUT_TPCC = """\
The levels that ACIDifier finds for TPC-C's transactions with four of the standard's consistency conditions: I1, a
warehouse's sales are the sum of its districts'; I2 and I3, ids of orders and new orders are unique in a district; I4,
the number of order lines is what the orders say. "Violated" are the clauses that some schedule breaks at weaker
levels; each was replayed statement by statement."""
DIFFERS_TPCC = """\
All ten cells agree. What the paper does not print is needed for that: I2 and I3 also say that the next order number
is above all others, and I4 that no order line is of an order to come. I1 to I4 leave `delivery` safe at RC; what
makes it need more is the standard's condition 12 (I5, balances add up to deliveries); condition 5 (I6, pending orders
have no carrier) is asked, too, and is never broken. I4 is per order, as where the paper explains it: summed over a
district it holds at RC. Orders have no primary key, since the database would refuse duplicates by itself."""
ABOUT_COURSEWARE = """\
I1: an enrollment refers to a student and a course; I2: no capacity is negative. ACIDifier raises enroll and
deregister to SER on both stores and leaves the rest at RC."""
DIFFERS_COURSEWARE = """\
Two rows differ, both of `cancel_course`: at RC it deletes a course while somebody enrolls in it, which breaks I1. The
paper's run is over the code of its figure 12, which has enroll and deregister only. `enroll` reads the student here;
as printed it does not, and breaks I1 even alone."""
ABOUT_TIMES = """\
"Less than a minute" for either program, on a laptop, with the solver Z3. CPU seconds of the whole command here."""
DIFFERS_TIMES = """\
ACIDifier proves (for any number of rows) what users have annotated with guarantees; here nothing is annotated.
Without `--prove` the search is complete up to 3 rows and 2 environment steps, and every violation is replayed; with
it, what can be proved for any number of rows is. On PostgreSQL a proof for who runs alone does not count where
SERIALIZABLE is mixed with weaker levels. Of the whole TPC-C, I1 to I4 and I6 are proved where they hold
([infer.md](../infer.md)); that takes minutes, as the solver is given a minute for each question that it cannot
answer, and is not repeated here. Nor is the explorer, which goes through all contents of two rows per table in plain
Python."""
ABOUT_VECTORS = """\
To check its table, the paper ran TPC-C with 10 warehouses of 10 districts of 3,000 customers at all 3^5 = 243 mixes
of levels, and 171 violated an invariant; the levels of table 1 did not. It does not say on which of the two servers.
Here: six clients on few rows, half a second for each mix (so that each collision is likely), the invariant evaluated
after each quarter of a second."""
DIFFERS_VECTORS = """\
No mix that is found safe was violated. If table 1 is right, 2·2·3·3·3 = 108 mixes must hold on PostgreSQL and 27 on
MySQL, so at most 135 and 216 can be violated: the paper's 171 fits MySQL alone, or both together. Of the mixes that
are found unsafe some do not show it in half a second; all of these have only `delivery` too low, and in six seconds
each they did (infer.md). I1 to I6 are evaluated, the paper's were I1 to I4."""
ABOUT_TABLE = """\
The paper's section 3 gives levels as pairs of predicates: RC is (true, true), MySQL's RR (snapshot, true), SI
(snapshot, no write conflict), SER (snapshot, snapshot). Its figures 3 and 9 and its repository have more examples.
Columns: RC0 and RRf as printed; RC with write locks; RRi as InnoDB does it; the clauses that a schedule breaks, by
transaction."""
DIFFERS_TABLE = """\
Read as printed, the specifications do not give the paper's own table: RC0 calls `payment` unsafe (it installs a row
that was computed earlier), and RRf calls `enroll` safe for I2. With write locks, which the authors' code conjoins to
every level, and with an UPDATE that looks at the present, they do. `add_interest` (figure 9) and the repository's
bank account (savings) hold everywhere, as said there. Searched up to 3 rows and 2 environment steps by the solver;
the same table by the explorer, and with proofs, is in the tests (tests/infer/test_infer_table.py)."""
ABOUT_SERIAL = """\
Section 6 has a second mode, without guarantees: each transaction must do what it does alone. The paper gives no
results for it. Here: the rows at the end are those of some serial order, by the explorer (2 rows per table, 2
environment steps)."""
DIFFERS_SERIAL = """\
The same levels as for the invariants, or stronger ones: the three transactions of savings keep their invariant at any
level, but at RC one of them loses the update of another."""
LEFT_OUT = """\
- **ACIDifier itself**: its public code handles selects, updates and branches of the last transaction only, and stops
  before the invariants are checked; none of the results above can be repeated with it.
- **Guarantees written by users** (G in the paper): there is nothing to write here; what others do is read off their
  text.
- **Lemmas of the paper** (soundness of the rules, decidability of the fragment): not measured. Our `--prove` is
  another encoding: tables as functions, with a frame that is read off the program.
- **10 warehouses of 30,000 customers**: with rows that few, each mix takes less than a second to break."""
