CREATE TABLE account (name TEXT PRIMARY KEY, custid INT);
CREATE TABLE savings (custid INT PRIMARY KEY, bal INT);
CREATE TABLE checking (custid INT PRIMARY KEY, bal INT);
