-- pgbench's tables and its built-in script, TPC-B (sort of)
create table pgbench_history(tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
create table pgbench_tellers(tid int not null, bid int, tbalance int, filler char(84)) with (fillfactor=100);
create table pgbench_accounts(aid int not null, bid int, abalance int, filler char(84)) with (fillfactor=100);
create table pgbench_branches(bid int not null, bbalance int, filler char(88)) with (fillfactor=100);
alter table pgbench_branches add primary key (bid);
alter table pgbench_tellers add primary key (tid);
alter table pgbench_accounts add primary key (aid);
insert into pgbench_branches values (1, 0, ''), (2, 0, '');
insert into pgbench_tellers values (1, 1, 0, ''), (2, 2, 0, '');
insert into pgbench_accounts values (1, 1, 0, ''), (2, 2, 0, '');

-- transaction: tpcb(aid, bid, tid, delta)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime, filler) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP, '');
END;

-- transaction: select_only(aid)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;

-- invariant: recorded
NOT EXISTS (SELECT 1 FROM pgbench_branches b WHERE b.bbalance <> (SELECT SUM(h.delta) FROM pgbench_history h WHERE h.bid = b.bid));
