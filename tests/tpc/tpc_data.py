"""The data that the questions are asked of, made at any scale."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

TPCH = ("customer", "orders", "lineitem", "part", "supplier", "partsupp", "nation", "region")


def tpch(folder: Path, scale: float) -> None:
    """tpch.duckdb, with what the package tpchgen-cli makes: 150,000 customers at scale 1, two thirds of them with orders."""
    generator = Path(sys.executable).with_name("tpchgen-cli")
    subprocess.run([generator, "parquet", "--scale-factor", str(scale), "--output-dir", folder / "parquet", "--quiet"], check=True)
    with duckdb.connect(str(folder / "tpch.duckdb")) as con:
        for table in TPCH:
            con.execute(f"CREATE TABLE {table} AS FROM read_parquet('{folder}/parquet/{table}.parquet')")


def tpcds(folder: Path, scale: float) -> None:
    """tpcds.duckdb. TPC-DS has no generator that can be installed without a compiler: these are its tables and columns, as far as the questions
    read them, with made-up rows. 100,000 customers at scale 1. Ours: everybody has an address of their own; fewer demographics and items.
    """
    made = Made(np.random.Generator(np.random.PCG64(20_030)), max(200, round(100_000 * scale)))
    with duckdb.connect(str(folder / "tpcds.duckdb")) as con:
        con.execute(DIMENSIONS)
        for name, columns in (*made.people(), *made.sales()):
            con.register("given", pa.table(columns))
            con.execute(f"CREATE TABLE {name} AS SELECT {PRICES.get(name, '*')} FROM given")
            con.unregister("given")


FIRST_DAY = 2_450_815  # d_date_sk of 1998-01-01; there are five years of days
DAYS = 1_826
ITEMS = 1_800
STATES = ("CA", "GA", "IL", "IN", "KY", "MI", "NC", "OH", "TN", "TX", "VA", "WA")
DIMENSIONS = f"""
CREATE TABLE date_dim AS SELECT {FIRST_DAY} + i::BIGINT AS d_date_sk, d::DATE AS d_date, (year(d) - 1900) * 12 + month(d) - 1 AS d_month_seq,
  year(d) AS d_year, quarter(d) AS d_qoy, month(d) AS d_moy, dayname(d) AS d_day_name
FROM (SELECT i, DATE '1998-01-01' + i::INT AS d FROM range({DAYS}) AS r(i));
CREATE TABLE time_dim AS SELECT i * 60 AS t_time_sk, i // 60 AS t_hour, i % 60 AS t_minute FROM range(1440) AS r(i);
CREATE TABLE item AS SELECT i AS i_item_sk, 'AAAAAAAA' || lpad(i::VARCHAR, 8, '0') AS i_item_id,
  (0.99 + (i * 37) % 99)::DECIMAL(7, 2) AS i_current_price, i % 50 + 1 AS i_brand_id, 'brand #' || (i % 50 + 1) AS i_brand,
  'class #' || (i % 10 * 3 + i // 10 % 3) AS i_class,
  ['Books', 'Children', 'Electronics', 'Home', 'Jewelry', 'Men', 'Music', 'Shoes', 'Sports', 'Women'][i % 10 + 1] AS i_category,
  i % 25 + 1 AS i_manufact_id, i // 7 % 20 + 1 AS i_manager_id
FROM range(1, {ITEMS + 1}) AS r(i);
CREATE TABLE store AS SELECT i AS s_store_sk, ['ought', 'able', 'ese', 'anti', 'cally', 'ation'][i % 6 + 1] AS s_store_name,
  ['TN', 'GA', 'OH'][i % 3 + 1] AS s_state, lpad((30000 + i * 1371)::VARCHAR, 5, '0') AS s_zip FROM range(1, 13) AS r(i);
CREATE TABLE promotion AS SELECT i AS p_promo_sk, if(i % 2 = 0, 'N', 'Y') AS p_channel_email, if(i % 3 = 0, 'Y', 'N') AS p_channel_event
FROM range(1, 301) AS r(i);
CREATE TABLE customer_demographics AS SELECT 1 + row_number() OVER (ORDER BY g, m, e) - 1 AS cd_demo_sk, g AS cd_gender, m AS cd_marital_status,
  e AS cd_education_status
FROM unnest(['M', 'F']) AS a(g), unnest(['M', 'S', 'D', 'W', 'U']) AS b(m),
  unnest(['Primary', 'Secondary', 'College', '2 yr Degree', '4 yr Degree', 'Advanced Degree', 'Unknown']) AS c(e);
CREATE TABLE household_demographics AS SELECT row_number() OVER (ORDER BY b, d, v) AS hd_demo_sk, b AS hd_buy_potential, d AS hd_dep_count,
  v AS hd_vehicle_count
FROM unnest(['>10000', '5001-10000', '1001-5000', '501-1000', '0-500', 'Unknown']) AS a(b), range(10) AS d(d), range(-1, 5) AS v(v);
"""
DEMOGRAPHICS, HOUSEHOLDS = 70, 360
_SOLD = "* EXCLUDE (list, share), (list / 100)::DECIMAL(7, 2) AS {p}_list_price, (list * share // 10000 / 100)::DECIMAL(7, 2) AS {p}_sales_price"
_SOLD += ", ({p}_quantity * (list * share // 10000) / 100)::DECIMAL(7, 2) AS {p}_ext_sales_price"
PRICES = {
    "store_sales": _SOLD.format(p="ss")
    + ", if(ss_promo_sk % 5 = 0, ss_quantity * (list * share // 10000) // 4 / 100, 0)::DECIMAL(7, 2) AS ss_coupon_amt",
    "catalog_sales": _SOLD.format(p="cs"),
    "web_sales": _SOLD.format(p="ws"),
    "store_returns": "* EXCLUDE (amount), (amount / 100)::DECIMAL(7, 2) AS sr_return_amt",
}
"""What a table's columns are, prices being whole cents in the rows that are made."""
Columns = dict[str, Any]


@dataclass(frozen=True)
class Made:
    """Rows for so many customers: each about two and a half visits to a store of a dozen lines, half as much by catalogue, a quarter on the web."""

    draw: np.random.Generator
    customers: int

    def people(self) -> Iterator[tuple[str, Columns]]:
        n, numbers = self.customers, np.arange(1, self.customers + 1)
        yield (
            "customer",
            {
                "c_customer_sk": numbers,
                "c_current_addr_sk": 100_000_000 + self.draw.permutation(numbers),
                "c_current_hdemo_sk": self._one_of(HOUSEHOLDS, n),
                "c_current_cdemo_sk": self._one_of(DEMOGRAPHICS, n),
                "c_preferred_cust_flag": np.where(self.draw.random(n) < 0.5, "Y", "N"),
                "c_birth_year": self.draw.integers(1924, 1993, n),
            },
        )
        zips = self.draw.integers(10_000, 90_000, n)
        states = np.array(STATES)[self.draw.integers(0, len(STATES), n)]
        yield "customer_address", {"ca_address_sk": 100_000_000 + numbers, "ca_state": states, "ca_zip": zips.astype(str)}

    def sales(self) -> Iterator[tuple[str, Columns]]:
        visits = round(self.customers * 2.4)
        lines = np.repeat(np.arange(visits), self.draw.integers(8, 17, visits))
        whose = self._masked(self._one_of(self.customers, visits), 0.045)
        store, day = self._one_of(12, visits), self._days(visits)
        household, person = self._one_of(HOUSEHOLDS, visits), self._one_of(DEMOGRAPHICS, visits)
        sold = {
            "ss_sold_date_sk": pc.take(day, lines),
            "ss_sold_time_sk": np.take(60 * self.draw.integers(480, 1_320, visits), lines),
            "ss_customer_sk": pc.take(whose, lines),
            "ss_cdemo_sk": person[lines],
            "ss_hdemo_sk": household[lines],
            "ss_store_sk": store[lines],
            "ss_promo_sk": self._one_of(300, len(lines)),
            "ss_ticket_number": lines + 1,
        } | self._goods("ss", len(lines))
        yield "store_sales", sold
        yield "store_returns", self._returned(sold)
        for name, prefix, share in (("catalog_sales", "cs", 14), ("web_sales", "ws", 7)):
            n = round(self.customers * share)
            when = {"ws_sold_time_sk": 60 * self.draw.integers(0, 1_440, n)} if prefix == "ws" else {}
            buyers = self._masked(self._one_of(self.customers, n), 0.005)
            yield name, {f"{prefix}_sold_date_sk": self._days(n), f"{prefix}_bill_customer_sk": buyers} | when | self._goods(prefix, n)

    def _returned(self, sold: Columns) -> Columns:
        """One line in ten, within two months."""
        back = np.flatnonzero(self.draw.random(len(sold["ss_ticket_number"])) < 0.1)
        days = pc.add(pc.take(sold["ss_sold_date_sk"], back), pa.array(self.draw.integers(1, 60, len(back))))
        quantity = np.maximum(1, sold["ss_quantity"][back] * self.draw.integers(1, 101, len(back)) // 100)
        return {
            "sr_returned_date_sk": pc.min_element_wise(days, FIRST_DAY + DAYS - 1, skip_nulls=False),
            "sr_item_sk": sold["ss_item_sk"][back],
            "sr_customer_sk": pc.take(sold["ss_customer_sk"], back),
            "sr_store_sk": sold["ss_store_sk"][back],
            "sr_ticket_number": sold["ss_ticket_number"][back],
            "sr_return_quantity": quantity,
            "amount": quantity * (sold["list"][back] * sold["share"][back] // 10_000),
        }

    def _goods(self, prefix: str, n: int) -> Columns:
        """What a line is of: the item, how many, the list price in cents, and the part of it that was paid, in ten-thousandths."""
        return {
            f"{prefix}_item_sk": self._one_of(ITEMS, n),
            f"{prefix}_quantity": self.draw.integers(1, 101, n),
            "list": np.floor(100 * self.draw.integers(1, 101, n) * (1 + self.draw.random(n))).astype(np.int64),
            "share": self.draw.integers(0, 10_001, n),
        }

    def _one_of(self, most: int, n: int) -> Any:
        return self.draw.integers(1, most + 1, n)

    def _days(self, n: int) -> pa.Array:
        """Days of sale: November and December sell twice as much, and some sales have no date."""
        months = np.array([(np.datetime64("1998-01-01") + i).astype("datetime64[M]").astype(int) % 12 for i in range(DAYS)])
        weights = np.where(months >= 10, 2.0, 1.0)
        return self._masked(FIRST_DAY + self.draw.choice(DAYS, n, p=weights / weights.sum()), 0.02)

    def _masked(self, values: Any, share: float) -> pa.Array:
        """The values, a share of them NULL."""
        return pa.array(values, mask=self.draw.random(len(values)) < share)
