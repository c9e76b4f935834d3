"""Each way in which a schema file is wrong: its code, its line, its key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from schema_samples import ANALYSTS, FILES, GOOD, LOOSE

from dpquery.errors import SchemaError
from dpquery.schema.read import loads, read

AGE = "      age: {type: integer, lower: 0, upper: 120}"
COUNTRY = "      country: {type: string, values: [US, DE, NO, JP]}"
SOURCE = "source: {engine: duckdb, path: shop.duckdb}"
COUNTRIES = "  countries: {public: true, columns: {country: {type: string}, region: {type: string}}}"
ITEMS = "    unit: {via: order_id, references: orders.order_id}"
VIEWS = 'views: {big_orders: "SELECT * FROM orders WHERE amount > 100"}'
BUDGET = "budget: {epsilon: 8, delta: 1e-6}"

# what to replace, by what, the code, the line it is reported on, the key, a part of the text
ERRORS = [
    # keys
    ("dataset: shop", "datasett: shop", "UNKNOWN_KEY", 1, "datasett", "did you mean `dataset`"),
    (AGE, "      age: {type: integer, lowr: 0, upper: 120}", "UNKNOWN_KEY", 17, "tables.users.columns.age.lowr", "did you mean `lower`"),
    ("    max_rows_per_unit: 1", "    max_rows: 1", "UNKNOWN_KEY", 14, "tables.users.max_rows", "max_rows_per_unit"),
    (ITEMS, "    unit: {via: order_id, reference: orders.order_id}", "UNKNOWN_KEY", 23, "tables.order_items.unit.reference", "`references`"),
    ("epsilon: 8, delta", "epsilon: 8, zzz: 1, delta", "UNKNOWN_KEY", 6, "budget.zzz", "known here"),
    ("timeout: 60, ", "timeouts: 60, ", "UNKNOWN_KEY", 27, "limits.timeouts", "did you mean `timeout`"),
    ("dataset: shop\n", "", "MISSING_KEY", 1, "dataset", "`dataset` is missing"),
    ("{epsilon: 8, delta: 1e-6}", "{delta: 1e-6}", "MISSING_KEY", 6, "budget.epsilon", "missing"),
    (BUDGET + "\n", "", "MISSING_KEY", 1, "budget", "missing"),
    (AGE, "      age: {lower: 0, upper: 120}", "MISSING_KEY", 17, "tables.users.columns.age.type", "missing"),
    (ITEMS, "    unit: {via: order_id}", "MISSING_KEY", 23, "tables.order_items.unit.references", "missing"),
    ("dataset: shop", "dataset:", "EMPTY_VALUE", 1, "dataset", "has no value"),
    (AGE, "      age: {type: integer, lower: ~, upper: 120}", "EMPTY_VALUE", 17, "tables.users.columns.age.lower", "has no value"),
    (AGE, "      age: {type: decimal(10,2)}", "EMPTY_VALUE", 17, "tables.users.columns.age.2)", "in quotes"),
    (COUNTRIES, "  countries: {public: true, columns: {}}", "EMPTY_VALUE", 25, "tables.countries.columns", "must not be empty"),
    ("dataset: shop", "dataset: shop\ndataset: shop", "DUPLICATE_KEY", 2, "dataset", "line 1"),
    ("    unit: user_id\n    max", "    unit: user_id\n    unit: age\n    max", "DUPLICATE_KEY", 14, "tables.users.unit", "twice"),
    ("privacy_unit: users.user_id", "privacy_unit: TODO", "TODO", 4, "privacy_unit", "decided"),
    ("{epsilon: 8, delta: 1e-6}", "{epsilon: TODO, delta: 1e-6}", "TODO", 6, "budget.epsilon", "decided"),
    # types of values
    (
        AGE,
        "      age: {type: integer, lower: young, upper: 120}",
        "WRONG_TYPE",
        17,
        "tables.users.columns.age.lower",
        "must be a number, not `young`",
    ),
    (AGE, '      age: {type: integer, lower: "0", upper: 120}', "WRONG_TYPE", 17, "tables.users.columns.age.lower", "without quotes"),
    (AGE, "      age: {type: integer, lower: true, upper: 120}", "WRONG_TYPE", 17, "tables.users.columns.age.lower", "must be a number, not true"),
    (AGE, "      age: {type: integer, lower: [0], upper: 120}", "WRONG_TYPE", 17, "tables.users.columns.age.lower", "must be a number, not a list"),
    (AGE, "      age: integer", "WRONG_TYPE", 17, "tables.users.columns.age", "must be a mapping"),
    (AGE, "      age: {type: integer, unique: yes}", "WRONG_TYPE", 17, "tables.users.columns.age.unique", "true or false, not `yes`"),
    ("dataset: shop", "dataset: 7", "WRONG_TYPE", 1, "dataset", "put it in quotes"),
    ("dataset: shop", "dataset: [a]", "WRONG_TYPE", 1, "dataset", "must be text, not a list"),
    ("max_groups_contributed: 4", "max_groups_contributed: 4.5", "WRONG_TYPE", 10, "contribution.max_groups_contributed", "whole number"),
    ("adjacency: add_remove", "adjacency: swap", "WRONG_TYPE", 5, "adjacency", "`add_remove` or `replace_one`, not `swap`"),
    (COUNTRY, "      country: {type: string, values: US}", "WRONG_TYPE", 18, "tables.users.columns.country.values", "must be a list"),
    ("memory: 4GB", "memory: lots", "WRONG_TYPE", 27, "limits.memory", "amount of memory"),
    ("memory: 4GB", "memory: 4", "WRONG_TYPE", 27, "limits.memory", "text"),
    ("version: 1", "version: 2", "UNSUPPORTED_VERSION", 2, "version", "must be 1, not 2"),
    # numbers out of range
    ("max_groups_contributed: 4", "max_groups_contributed: 0", "OUT_OF_RANGE", 10, "contribution.max_groups_contributed", "between 1 and"),
    ("max_groups_contributed: 4", "max_groups_contributed: -1", "OUT_OF_RANGE", 10, "contribution.max_groups_contributed", "between 1 and"),
    ("max_rows_per_unit: 1", "max_rows_per_unit: 1e400", "OUT_OF_RANGE", 14, "tables.users.max_rows_per_unit", "between 1 and"),
    ("max_rows_per_unit: 1", "max_rows_per_unit: 1e401", "OUT_OF_RANGE", 14, "tables.users.max_rows_per_unit", "digits"),
    ("max_rows_per_unit: 1", "max_rows_per_unit: " + "9" * 101, "OUT_OF_RANGE", 14, "tables.users.max_rows_per_unit", "digits"),
    ("min_units_per_group: 1", "min_units_per_group: 0", "OUT_OF_RANGE", 8, "min_units_per_group", "between 1 and"),
    ("timeout: 60", "timeout: 0", "OUT_OF_RANGE", 27, "limits.timeout", "above 0"),
    ("timeout: 60", "timeout: 1e9", "OUT_OF_RANGE", 27, "limits.timeout", "seconds"),
    ("timeout: 60", "timeout: .inf", "NOT_FINITE", 27, "limits.timeout", "finite"),
    ("timeout: 60", "response_quantum: 0", "OUT_OF_RANGE", 27, "limits.response_quantum", "at once"),
    ("timeout: 60", "response_quantum: 1e9", "OUT_OF_RANGE", 27, "limits.response_quantum", "seconds"),
    ("timeout: 60", "response_quantum: -1", "OUT_OF_RANGE", 27, "limits.response_quantum", "0.001"),
    ("timeout: 60", "response_quantum: soon", "WRONG_TYPE", 27, "limits.response_quantum", "number"),
    ("memory: 4GB", "memory: 1KB", "OUT_OF_RANGE", 27, "limits.memory", "at least"),
    ("memory: 4GB", "memory: 9999TB", "OUT_OF_RANGE", 27, "limits.memory", "at most"),
    ("threads: 2", "threads: 4096", "OUT_OF_RANGE", 27, "limits.threads", "at most"),
    # bounds, steps, values
    (AGE, "      age: {type: integer, lower: 120, upper: 0}", "BAD_BOUNDS", 17, "tables.users.columns.age.lower", "above upper"),
    (AGE, "      age: {type: integer, lower: 0, upper: .inf}", "NOT_FINITE", 17, "tables.users.columns.age.upper", "finite"),
    (AGE, "      age: {type: integer, lower: .nan, upper: 1}", "NOT_FINITE", 17, "tables.users.columns.age.lower", "finite"),
    (AGE, "      age: {type: integer, lower: 0, upper: inf}", "NOT_FINITE", 17, "tables.users.columns.age.upper", "finite"),
    (AGE, "      age: {type: integer, lower: 0}", "BAD_BOUNDS", 17, "tables.users.columns.age.lower", "`upper` is not"),
    (AGE, "      age: {type: integer, upper: 0}", "BAD_BOUNDS", 17, "tables.users.columns.age.upper", "`lower` is not"),
    (AGE, "      age: {type: integer, lower: 0, upper: 0}", "BAD_BOUNDS", 17, "tables.users.columns.age.upper", "both bounds are 0"),
    (AGE, "      age: {type: integer, lower: 0.5, upper: 9}", "BAD_BOUNDS", 17, "tables.users.columns.age.lower", "digits"),
    (AGE, "      age: {type: integer, lower: 0, upper: 9223372036854775808}", "BAD_BOUNDS", 17, "tables.users.columns.age.upper", "hold"),
    (AGE, "      age: {type: float, lower: 0, upper: 1e301}", "BAD_BOUNDS", 17, "tables.users.columns.age.upper", "hold"),
    (AGE, "      age: {type: date, lower: 0, upper: 9}", "BAD_BOUNDS", 17, "tables.users.columns.age.lower", "has no bounds"),
    (AGE, "      age: {type: string, lower: 0, upper: 9}", "BAD_BOUNDS", 17, "tables.users.columns.age.lower", "has no bounds"),
    (AGE, "      age: {type: integer, step: 0}", "BAD_STEP", 17, "tables.users.columns.age.step", "above 0"),
    (AGE, "      age: {type: integer, step: -1}", "BAD_STEP", 17, "tables.users.columns.age.step", "above 0"),
    (AGE, "      age: {type: integer, step: 0.5}", "BAD_STEP", 17, "tables.users.columns.age.step", "digits"),
    (AGE, '      age: {type: "decimal(9,1)", step: 0.01}', "BAD_STEP", 17, "tables.users.columns.age.step", "digits"),
    (AGE, "      age: {type: boolean, step: 1}", "BAD_STEP", 17, "tables.users.columns.age.step", "has no step"),
    (AGE, "      age: {type: float, lower: 0, upper: 1, step: 2}", "BAD_STEP", 17, "tables.users.columns.age.step", "wider"),
    (AGE, "      age: {type: decimal}", "UNKNOWN_TYPE", 17, "tables.users.columns.age.type", "step: 0.01"),
    (AGE, '      age: {type: "decimal(39,2)"}', "UNKNOWN_TYPE", 17, "tables.users.columns.age.type", "38"),
    (AGE, '      age: {type: "decimal(2,3)"}', "UNKNOWN_TYPE", 17, "tables.users.columns.age.type", "s <= p"),
    (AGE, "      age: {type: varchar}", "UNKNOWN_TYPE", 17, "tables.users.columns.age.type", "did you mean `string`"),
    (AGE, "      age: {type: intger}", "UNKNOWN_TYPE", 17, "tables.users.columns.age.type", "did you mean `integer`"),
    (AGE, "      age: {type: interval}", "UNKNOWN_TYPE", 17, "tables.users.columns.age.type", "no type is called"),
    (COUNTRY, "      country: {type: string, values: [US, 7]}", "BAD_VALUES", 18, "tables.users.columns.country.values[1]", "in quotes"),
    (COUNTRY, "      country: {type: string, values: [US, true]}", "BAD_VALUES", 18, "tables.users.columns.country.values[1]", "in quotes"),
    (COUNTRY, "      country: {type: string, values: [US, US]}", "BAD_VALUES", 18, "tables.users.columns.country.values[1]", "twice"),
    (COUNTRY, "      country: {type: string, values: [~, null]}", "BAD_VALUES", 18, "tables.users.columns.country.values[1]", "twice"),
    (COUNTRY, "      country: {type: string, values: []}", "BAD_VALUES", 18, "tables.users.columns.country.values", "10,000"),
    (COUNTRY, "      country: {type: string, values: [[US]]}", "WRONG_TYPE", 18, "tables.users.columns.country.values[0]", "one value"),
    (COUNTRY, "      country: {type: integer, values: [US]}", "BAD_VALUES", 18, "tables.users.columns.country.values[0]", "not of the type integer"),
    (COUNTRY, "      country: {type: integer, values: [1.5]}", "BAD_VALUES", 18, "tables.users.columns.country.values[0]", "digits"),
    (COUNTRY, "      country: {type: integer, values: [true]}", "BAD_VALUES", 18, "tables.users.columns.country.values[0]", "not of the type"),
    (COUNTRY, "      country: {type: integer, values: [1e30]}", "BAD_VALUES", 18, "tables.users.columns.country.values[0]", "hold"),
    (COUNTRY, "      country: {type: float, values: [.nan]}", "BAD_VALUES", 18, "tables.users.columns.country.values[0]", "hold"),
    (
        COUNTRY,
        "      country: {type: integer, lower: 0, upper: 1, values: [2]}",
        "BAD_VALUES",
        18,
        "tables.users.columns.country.values[0]",
        "outside",
    ),
    (COUNTRY, "      country: {type: date, values: [2024-02-30]}", "BAD_VALUES", 18, "tables.users.columns.country.values[0]", "2024-01-31"),
    (COUNTRY, "      country: {type: date, values: [20240230]}", "BAD_VALUES", 18, "tables.users.columns.country.values[0]", "not of the type"),
    (COUNTRY, "      country: {type: timestamp, values: [yesterday]}", "BAD_VALUES", 18, "tables.users.columns.country.values[0]", "12:30:00"),
    (
        COUNTRY,
        '      country: {type: timestamp, values: ["2024-01-31 10:00:00+01:00"]}',
        "BAD_VALUES",
        18,
        "tables.users.columns.country.values[0]",
        "timestamp",
    ),
    (COUNTRY, "      country: {type: uuid, values: [abc]}", "BAD_VALUES", 18, "tables.users.columns.country.values[0]", "uuid"),
    (COUNTRY, "      country: {type: string, unique: true, values: [~]}", "BAD_VALUES", 18, "tables.users.columns.country.values[0]", "no NULL"),
    # names
    ("  countries: {public", "  Users: {public", "DUPLICATE_NAME", 25, "tables.Users", "case only"),
    (AGE, AGE + "\n      AGE: {type: integer}", "DUPLICATE_NAME", 18, "tables.users.columns.AGE", "case only"),
    ("views: {big_orders", "views: {orders", "DUPLICATE_NAME", 26, "views.orders", "twice"),
    ("  countries: {public", "  noisy: {public", "BAD_NAME", 25, "tables.noisy", "reserved"),
    ("  countries: {public", "  a.b: {public", "BAD_NAME", 25, "tables.a.b", "dot"),
    ("  countries: {public", "  __unit: {public", "BAD_NAME", 25, "tables.__unit", "reserved"),
    (AGE, "      __unit: {type: integer}", "BAD_NAME", 17, "tables.users.columns.__unit", "reserved"),
    (AGE, "      'a\"b': {type: integer}", "BAD_NAME", 17, 'tables.users.columns.a"b', "double quotes"),
    (AGE, "      'a ': {type: integer}", "BAD_NAME", 17, "tables.users.columns.a ", "spaces"),
    ("views: {big_orders", "views: {noisy", "BAD_NAME", 26, "views.noisy", "reserved"),
    (VIEWS, 'views: {v: " "}', "BAD_VIEW", 26, "views.v", "SELECT"),
    (
        COUNTRIES,
        "  countries: {public: true, table: a.b.c, columns: {country: {type: string}}}",
        "BAD_NAME",
        25,
        "tables.countries.table",
        "schema.table",
    ),
    (
        COUNTRIES,
        "  countries: {public: true, table: a., columns: {country: {type: string}}}",
        "BAD_NAME",
        25,
        "tables.countries.table",
        "schema.table",
    ),
    # sources
    (SOURCE + "\n", "", "BAD_SOURCE", 11, "tables.users", "`path:`"),
    (SOURCE, "source: {engine: postgres, path: x}", "UNSUPPORTED_SOURCE", 3, "source.engine", "duckdb"),
    (SOURCE, "source: {path: x.parquet}", "UNSUPPORTED_SOURCE", 3, "source.path", "`path:`"),
    (SOURCE, "source: {path: 's3://bucket/x'}", "UNSUPPORTED_SOURCE", 3, "source.path", "file of this computer"),
    (SOURCE, "source: {path: ':memory:'}", "UNSUPPORTED_SOURCE", 3, "source.path", "file of this computer"),
    (SOURCE, "source: {engine: duckdb}", "MISSING_KEY", 3, "source.path", "missing"),
    ("  countries: {public", "  countries: {path: c.csv, public", "BAD_SOURCE", 25, "tables.countries.path", "already"),
    ("  countries: {public", "  countries: {csv: {}, public", "BAD_SOURCE", 25, "tables.countries.csv", "CSV files only"),
    # units and paths
    ("    unit: user_id\n    max", "    max", "BAD_UNIT", 12, "tables.users", "neither whose"),
    ("    unit: user_id\n    columns: {order_id", "    columns: {order_id", "BAD_UNIT", 19, "tables.orders", "neither whose"),
    ("    unit: user_id\n    columns: {order_id", "    unit: [user_id, x]\n    columns: {order_id", "BAD_UNIT", 20, "tables.orders.unit", "one unit"),
    (
        "    unit: user_id\n    columns: {order_id",
        "    unit: usr_id\n    columns: {order_id",
        "BAD_UNIT",
        20,
        "tables.orders.unit",
        "did you mean `user_id`",
    ),
    ("{public: true, columns", "{public: true, unit: country, columns", "BAD_UNIT", 25, "tables.countries.unit", "public table has no unit"),
    ("{public: true, columns", "{public: true, max_rows_per_unit: 2, columns", "BAD_UNIT", 25, "tables.countries.max_rows_per_unit", "public"),
    ("{public: true, columns", "{public: true, contribution: {}, columns", "BAD_UNIT", 25, "tables.countries.contribution", "public"),
    ("privacy_unit: users.user_id", "privacy_unit: users", "BAD_UNIT", 4, "privacy_unit", "table.column"),
    ("privacy_unit: users.user_id", "privacy_unit: user.user_id", "BAD_UNIT", 4, "privacy_unit", "did you mean `users`"),
    ("privacy_unit: users.user_id", "privacy_unit: users.userid", "BAD_UNIT", 4, "privacy_unit", "did you mean `user_id`"),
    ("privacy_unit: users.user_id", "privacy_unit: users.age", "BAD_UNIT", 4, "privacy_unit", "not the unit"),
    ("privacy_unit: users.user_id", "privacy_unit: order_items.order_id", "BAD_UNIT", 4, "privacy_unit", "not the unit"),
    ("privacy_unit: users.user_id", "privacy_unit: countries.country", "BAD_UNIT", 4, "privacy_unit", "public"),
    ("      user_id: {type: integer}", "      user_id: {type: float}", "BAD_UNIT", 4, "privacy_unit", "not a float"),
    (
        "      user_id: {type: integer}",
        "      user_id: {type: string}",
        "BAD_UNIT",
        20,
        "tables.orders.unit",
        "integer, but the privacy unit a string",
    ),
    (ITEMS, "    unit: {via: order, references: orders.order_id}", "BAD_PATH", 23, "tables.order_items.unit.via", "did you mean `order_id`"),
    (ITEMS, "    unit: {via: order_id, references: order.order_id}", "BAD_PATH", 23, "tables.order_items.unit.references", "did you mean `orders`"),
    (ITEMS, "    unit: {via: order_id, references: orders.orderid}", "BAD_PATH", 23, "tables.order_items.unit.references", "did you mean `order_id`"),
    (ITEMS, "    unit: {via: order_id, references: orders}", "BAD_PATH", 23, "tables.order_items.unit.references", "table.column"),
    (ITEMS, "    unit: {via: product, references: countries.country}", "BAD_PATH", 23, "tables.order_items.unit.references", "public"),
    (ITEMS, "    unit: {via: order_id, references: orders.user_id}", "BAD_PATH", 23, "tables.order_items.unit.references", "unique: true"),
    (ITEMS, "    unit: {via: product, references: orders.order_id}", "BAD_PATH", 23, "tables.order_items.unit.via", "nothing is cast"),
    (
        "order_id: {type: integer, unique: true}",
        "order_id: {type: date, unique: true}",
        "BAD_PATH",
        23,
        "tables.order_items.unit.via",
        "nothing is cast",
    ),
    (
        "    unit: user_id\n    columns: {order_id",
        "    unit: {via: order_id, references: orders.order_id}\n    columns: {order_id",
        "BAD_PATH",
        20,
        "tables.orders.unit",
        "circle",
    ),
    ("{public: true, columns", "{table: main.USERS, public: true, columns", "BAD_UNIT", 25, "tables.countries", "same data as `users`"),
    # money
    ("{epsilon: 8, delta: 1e-6}", "{epsilon: 0, delta: 1e-6}", "OUT_OF_RANGE", 6, "budget.epsilon", "above 0"),
    ("{epsilon: 8, delta: 1e-6}", "{epsilon: -1, delta: 1e-6}", "OUT_OF_RANGE", 6, "budget.epsilon", "above 0"),
    ("{epsilon: 8, delta: 1e-6}", "{epsilon: .nan, delta: 1e-6}", "NOT_FINITE", 6, "budget.epsilon", "finite"),
    ("{epsilon: 8, delta: 1e-6}", "{epsilon: .inf, delta: 1e-6}", "NOT_FINITE", 6, "budget.epsilon", "finite"),
    ("{epsilon: 8, delta: 1e-6}", "{epsilon: 1e7, delta: 1e-6}", "OUT_OF_RANGE", 6, "budget.epsilon", "unsafe_testing"),
    ("{epsilon: 8, delta: 1e-6}", "{epsilon: 8, delta: -1e-6}", "OUT_OF_RANGE", 6, "budget.delta", "below 0"),
    ("{epsilon: 8, delta: 1e-6}", "{epsilon: 8, delta: 1}", "OUT_OF_RANGE", 6, "budget.delta", "below 1"),
    ("max_epsilon: 2", "max_epsilon: 50.1", "OUT_OF_RANGE", 7, "per_query.max_epsilon", "at most 50"),
    ("max_epsilon: 2", "max_epsilon: 0", "OUT_OF_RANGE", 7, "per_query.max_epsilon", "above 0"),
    ("epsilon: 0.25, max_epsilon: 2, ", "epsilon: 51, ", "OUT_OF_RANGE", 7, "per_query.epsilon", "at most 50"),
    ("max_epsilon: 2", "max_epsilon: 0.1", "BAD_BUDGET", 7, "per_query.epsilon", "above max_epsilon"),
    ("delta: 1e-9}", "delta: 1}", "OUT_OF_RANGE", 7, "per_query.delta", "below 1"),
    ("delta: 1e-9}", "delta: -1}", "OUT_OF_RANGE", 7, "per_query.delta", "below 0"),
    ("alice: {epsilon: 4,", "alice: {epsilon: 7,", "BAD_BUDGET", 9, "analysts", "add up to 9"),
    ("alice: {epsilon: 4,", "alice: {epsilon: 6.0000000000000000000000000000000000000001,", "BAD_BUDGET", 9, "analysts", "add up"),
    ("alice: {epsilon: 4,", "alice: {epsilon: 9,", "BAD_BUDGET", 9, "analysts", "`alice` is above"),
    ("delta: 5e-7}", "delta: 9e-7}", "BAD_BUDGET", 9, "analysts", "delta add up to 1.1e-06"),
    ("alice: {epsilon: 4,", "alice: {epsilon: 0,", "OUT_OF_RANGE", 9, "analysts.alice.epsilon", "above 0"),
    ("alice: {", "' alice': {", "BAD_NAME", 9, "analysts. alice", "spaces"),
    (ANALYSTS, "analysts: {}", "EMPTY_VALUE", 9, "analysts", "empty"),
    (ANALYSTS, ANALYSTS + "\noversubscribe: 1", "WRONG_TYPE", 10, "oversubscribe", "true or false"),
    (ANALYSTS, "groups: {t: {epsilon: 1, members: [a]}}", "BAD_BUDGET", 9, "groups", "no analysts"),
    (
        ANALYSTS,
        ANALYSTS + "\ngroups: {t: {epsilon: 4, delta: 5e-7, members: [alicia]}}",
        "BAD_BUDGET",
        10,
        "groups.t.members[0]",
        "did you mean `alice`",
    ),
    (ANALYSTS, ANALYSTS + "\ngroups: {t: {epsilon: 4, delta: 5e-7, members: [default]}}", "BAD_BUDGET", 10, "groups.t.members[0]", "shared"),
    (
        ANALYSTS,
        ANALYSTS + "\ngroups: {t: {epsilon: 3, delta: 5e-7, members: [alice]}}",
        "BAD_BUDGET",
        10,
        "groups.t",
        "`alice` is above that of the group `t`",
    ),
    (ANALYSTS, ANALYSTS + "\ngroups: {t: {epsilon: 7, delta: 5e-7, members: [alice]}}", "BAD_BUDGET", 9, "analysts", "add up to 9"),
    (ANALYSTS, ANALYSTS + "\ngroups: {t: {epsilon: 4, delta: 5e-7, members: []}}", "EMPTY_VALUE", 10, "groups.t.members", "empty"),
    (ANALYSTS, ANALYSTS + "\ngroups: {alice: {epsilon: 4, delta: 5e-7, members: [alice]}}", "DUPLICATE_NAME", 10, "groups.alice", "analyst too"),
    (
        ANALYSTS,
        ANALYSTS + "\ngroups: {t: {epsilon: 4, delta: 5e-7, members: [alice]}, u: {epsilon: 4, delta: 5e-7, members: [alice]}}",
        "BAD_BUDGET",
        10,
        "groups.u.members[0]",
        "already: `t`",
    ),
    # YAML itself
    ("dataset: shop", "dataset: !!str shop", "YAML_TAG", 1, "dataset", "tags"),
    ("dataset: shop", "dataset: !python/object:os.system x", "YAML_TAG", 1, "dataset", "tags"),
    ("dataset: shop", "dataset: *nothing", "YAML_ALIAS", 1, "dataset", "no `&nothing`"),
    (VIEWS, "views: &v {a: *v}", "YAML_ALIAS", 26, "views.a", "inside"),
    (VIEWS, "views: {<<: 7}", "YAML_ALIAS", 26, "views", "merges mappings"),
    (VIEWS, "views: {a: b", "YAML_SYNTAX", 27, "", "not YAML"),
    (VIEWS, VIEWS + "\n\t- a", "YAML_SYNTAX", 27, "", "not YAML"),
    (VIEWS, "views: {[a]: b}", "WRONG_TYPE", 26, "views", "a key is a word"),
    (VIEWS, VIEWS + "\n---\na: b", "YAML_SYNTAX", 27, "", "one document"),
    ("dataset: shop", "%YAML 1.1\n---\ndataset: shop", "YAML_SYNTAX", 2, "", "1.2"),
    ("dataset: shop", "dataset: sh\x07op", "YAML_SYNTAX", 1, "", "control characters"),
    ("dataset: shop", "dataset: " + "[" * 60 + "]" * 60, "TOO_LARGE", 1, "dataset" + "[0]" * 40, "levels deep"),
]


@pytest.mark.parametrize(("old", "new", "code", "line", "key", "part"), ERRORS, ids=[f"{e[2]}-{e[1][-60:]}" for e in ERRORS])
def test_each_error_names_its_code_line_and_key(old: str, new: str, code: str, line: int, key: str, part: str) -> None:
    assert GOOD.count(old) >= 1
    with pytest.raises(SchemaError) as caught:
        loads(GOOD.replace(old, new, 1), Path("/data/shop.yaml"), "shop.yaml")
    error = caught.value
    assert (error.code, None if error.position is None else error.position.line) == (code, line), str(error)
    assert error.message.startswith(f"shop.yaml, line {line}: {key + ': ' if key else ''}"), error.message
    assert part in str(error), str(error)
    assert re.fullmatch(r"[A-Z0-9_]+", error.code)
    assert error.exit_status == 4


def test_an_error_points_into_the_text() -> None:
    with pytest.raises(SchemaError) as caught:
        loads(GOOD.replace("lower: 0, upper: 120", "lower: 130, upper: 120"), Path("/data/shop.yaml"), "shop.yaml")
    assert str(caught.value) == (
        "BAD_BOUNDS: shop.yaml, line 17: tables.users.columns.age.lower: lower (130) is above upper (120)\n"
        "  at line 17, column 35\n"
        "          age: {type: integer, lower: 130, upper: 120}\n"
        "                                      ^^^"
    )


@pytest.mark.parametrize(
    ("old", "new", "code", "line", "key"),
    [
        ("people.csv", "people.json", "UNSUPPORTED_SOURCE", 7, "tables.people.path"),
        ("people.csv", "https://host/people.csv", "UNSUPPORTED_SOURCE", 7, "tables.people.path"),
        ("people.csv", "people.parquet", "BAD_SOURCE", 8, "tables.people.csv"),
        ("people.csv", "[a.csv, b.parquet]", "BAD_SOURCE", 7, "tables.people.path"),
        ("people.csv", "[]", "BAD_SOURCE", 7, "tables.people.path"),
        ("people.csv", "[[a.csv]]", "WRONG_TYPE", 7, "tables.people.path"),
        ("people.csv", "{a: b}", "WRONG_TYPE", 7, "tables.people.path"),
        ("people.csv", '"a.csv\\nb.csv"', "BAD_NAME", 7, "tables.people.path"),
        ('delimiter: ";"', 'delimiter: ";;"', "BAD_SOURCE", 8, "tables.people.csv.delimiter"),
        ('delimiter: ";"', 'delimiter: ""', "BAD_SOURCE", 8, "tables.people.csv.delimiter"),
        ('delimiter: ";"', "delimiter: '\"'", "BAD_SOURCE", 8, "tables.people.csv.delimiter"),
        ('delimiter: ";"', 'quote: "\\n"', "BAD_SOURCE", 8, "tables.people.csv.quote"),
        ('delimiter: ";"', 'null: "a\\nb"', "BAD_SOURCE", 8, "tables.people.csv.null"),
        ('delimiter: ";"', "date: iso", "BAD_SOURCE", 8, "tables.people.csv.date"),
        ('delimiter: ";"', "sniff: true", "UNKNOWN_KEY", 8, "tables.people.csv.sniff"),
        ("    unit: id", "    unit: id\n    table: x", "BAD_SOURCE", 7, "tables.people.table"),
        ("tables:", "source: {path: x.duckdb}\ntables:", "BAD_SOURCE", 8, "tables.people.path"),
        (
            "    columns: {id: {type: integer}}",
            "    columns: {id: {type: integer}}\n  open: {public: true, path: ./people.csv, columns: {id: {type: integer}}}",
            "BAD_UNIT",
            10,
            "tables.open",
        ),
    ],
)
def test_file_sources(old: str, new: str, code: str, line: int, key: str) -> None:
    assert loads(FILES, Path("/data/files.yaml")).database is None
    with pytest.raises(SchemaError) as caught:
        loads(FILES.replace(old, new, 1), Path("/data/files.yaml"), "files.yaml")
    error = caught.value
    assert (error.code, error.position and error.position.line) == (code, line), str(error)
    assert f": {key}: " in error.message


def test_files_that_are_no_schema(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no such file") as missing:
        read(tmp_path / "absent.yaml")
    assert missing.value.code == "FILE_MISSING"
    with pytest.raises(SchemaError, match="directory"):
        read(tmp_path)
    for name, data, code in [
        ("latin.yaml", "dataset: shop\nviews: {a: caf\xe9}".encode("latin-1"), "NOT_UTF8"),
        ("huge.yaml", b"# " + b"x" * 1_000_001, "TOO_LARGE"),
        ("empty.yaml", b"", "MISSING_KEY"),
        ("comment.yaml", b"# nothing\n", "MISSING_KEY"),
        ("list.yaml", b"- a\n- b\n", "WRONG_TYPE"),
        ("word.yaml", b"hello", "WRONG_TYPE"),
        ("binary.yaml", b"PK\x03\x04\x00\x00", "YAML_SYNTAX"),
    ]:
        file = tmp_path / name
        file.write_bytes(data)
        with pytest.raises(SchemaError) as caught:
            read(file)
        assert caught.value.code == code, name
        assert name in caught.value.message
    with pytest.raises(SchemaError):
        read("a\0b")


def test_a_bomb_of_aliases_is_refused() -> None:
    lines = ["a0: &a0 {x: lol, y: lol}"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 20)]
    with pytest.raises(SchemaError) as caught:
        loads("\n".join(lines), Path("/bomb.yaml"))
    assert caught.value.code == "TOO_LARGE"


def test_unknown_keys_are_told_before_missing_ones() -> None:
    with pytest.raises(SchemaError) as caught:
        loads(GOOD.replace("privacy_unit:", "privacyunit:"), Path("/data/shop.yaml"))
    assert caught.value.code == "UNKNOWN_KEY"
    assert caught.value.instead == "did you mean `privacy_unit`?"


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("epsilon: 1e30", "epsilon: 1e41", "budget.epsilon"),
        ("delta: 1000", "delta: 1e41", "budget.delta"),
        ("delta: 1e-6", "delta: 1.1", "per_query.delta"),
        ("max_epsilon: 1e25", "max_epsilon: 1e41", "per_query.max_epsilon"),
        ("delta: 1000", "delta: .inf", "budget.delta"),
    ],
)
def test_unsafe_testing_has_limits_too(old: str, new: str, key: str) -> None:
    assert loads(LOOSE.replace("delta: 1e-6", "delta: 1"), Path("/base.yaml")).per_query.delta == 1
    with pytest.raises(SchemaError) as caught:
        loads(LOOSE.replace(old, new), Path("/base.yaml"))
    assert caught.value.code in ("OUT_OF_RANGE", "NOT_FINITE")
    assert f": {key}: " in caught.value.message


@pytest.mark.parametrize("key", ["budget", "per_query"])
def test_without_unsafe_testing_noise_cannot_be_turned_off(key: str) -> None:
    text = LOOSE.replace("unsafe_testing: true\n", "")
    text = text if key == "budget" else text.replace("{epsilon: 1e30, delta: 1000}", "{epsilon: 1}")
    with pytest.raises(SchemaError) as caught:
        loads(text, Path("/base.yaml"))
    assert caught.value.code == "OUT_OF_RANGE"
    assert f": {key}." in caught.value.message
