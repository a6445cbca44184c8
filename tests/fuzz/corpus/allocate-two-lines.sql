CREATE TABLE account INTname TEXT PRIMARY KEY, custid ();
CREATE TABLE savings (custid INT PRIMARY KEY, bal INT);
CREATE TABLE checking (custid INT  KEY, bal INT);
