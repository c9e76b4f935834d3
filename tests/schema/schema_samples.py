"""Schema files that are right: the tests spoil them."""

GOOD = """\
dataset: shop
version: 1
source: {engine: duckdb, path: shop.duckdb}
privacy_unit: users.user_id
adjacency: add_remove
budget: {epsilon: 8, delta: 1e-6}
per_query: {epsilon: 0.25, max_epsilon: 2, delta: 1e-9}
min_units_per_group: 1
analysts: {default: {epsilon: 2, delta: 2e-7}, alice: {epsilon: 4, delta: 5e-7}}
contribution: {max_groups_contributed: 4, max_rows_per_group: 20, join_rows_per_unit: 1000}
tables:
  users:
    unit: user_id
    max_rows_per_unit: 1
    columns:
      user_id: {type: integer}
      age: {type: integer, lower: 0, upper: 120}
      country: {type: string, values: [US, DE, NO, JP]}
  orders:
    unit: user_id
    columns: {order_id: {type: integer, unique: true}, user_id: {type: integer}, amount: {type: decimal, lower: 0, upper: 500, step: 0.01}}
  order_items:
    unit: {via: order_id, references: orders.order_id}
    columns: {order_id: {type: integer}, product: {type: string}, price: {type: decimal, lower: 0, upper: 500, step: 0.01}}
  countries: {public: true, columns: {country: {type: string}, region: {type: string}}}
views: {big_orders: "SELECT * FROM orders WHERE amount > 100"}
limits: {timeout: 60, memory: 4GB, threads: 2, timeouts_per_account: 5}
"""

ANALYSTS = "analysts: {default: {epsilon: 2, delta: 2e-7}, alice: {epsilon: 4, delta: 5e-7}}"

FILES = """\
dataset: files
privacy_unit: people.id
budget: {epsilon: 1}
tables:
  people:
    unit: id
    path: people.csv
    csv: {delimiter: ";"}
    columns: {id: {type: integer}}
"""

LOOSE = """\
dataset: base
source: {engine: duckdb, path: base.duckdb}
privacy_unit: users.user_id
unsafe_testing: true
budget: {epsilon: 1e30, delta: 1000}
per_query: {epsilon: 1, delta: 1e-6, max_epsilon: 1e25}
tables:
  users: {unit: user_id, columns: {user_id: {type: integer}}}
  visits: &visits
    unit: user_id
    columns:
      user_id: {type: integer}
      amount: {type: float, lower: -1000, upper: 1000}
  visits_dirty: *visits
"""
