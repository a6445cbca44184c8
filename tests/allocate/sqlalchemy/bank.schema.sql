--
-- PostgreSQL database dump
--

\restrict x

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: account; Type: TABLE; Schema: public; Owner: app
--

CREATE TABLE public.account (
    name character varying(20) NOT NULL,
    id integer NOT NULL
);


ALTER TABLE public.account OWNER TO app;

--
-- Name: checking; Type: TABLE; Schema: public; Owner: app
--

CREATE TABLE public.checking (
    id integer NOT NULL,
    bal integer NOT NULL
);


ALTER TABLE public.checking OWNER TO app;

--
-- Name: savings; Type: TABLE; Schema: public; Owner: app
--

CREATE TABLE public.savings (
    id integer NOT NULL,
    bal integer NOT NULL
);


ALTER TABLE public.savings OWNER TO app;

--
-- Name: account account_id_key; Type: CONSTRAINT; Schema: public; Owner: app
--

ALTER TABLE ONLY public.account
    ADD CONSTRAINT account_id_key UNIQUE (id);


--
-- Name: account account_pkey; Type: CONSTRAINT; Schema: public; Owner: app
--

ALTER TABLE ONLY public.account
    ADD CONSTRAINT account_pkey PRIMARY KEY (name);


--
-- Name: checking checking_pkey; Type: CONSTRAINT; Schema: public; Owner: app
--

ALTER TABLE ONLY public.checking
    ADD CONSTRAINT checking_pkey PRIMARY KEY (id);


--
-- Name: savings savings_pkey; Type: CONSTRAINT; Schema: public; Owner: app
--

ALTER TABLE ONLY public.savings
    ADD CONSTRAINT savings_pkey PRIMARY KEY (id);


--
-- PostgreSQL database dump complete
--

\unrestrict x

