#!/bin/sh
# The sample shop from nothing to three private answers: sh examples/00_demo.sh [FOLDER]
set -eu
folder=${1:-demo}
bold='' plain=''
[ ! -t 1 ] || bold=$(printf '\033[1m') plain=$(printf '\033[0m')
say() { printf '\n%s$ %s%s\n' "$bold" "$*" "$plain"; }
run() { say "dpquery $*"; dpquery "$@"; }

[ -e "$folder/shop.ledger" ] || run demo "$folder"

run tables --schema "$folder/shop.yaml"

say 'How many customers, and how old, by region? The regions are public, so each of them appears. An average has an interval too.'
run query --schema "$folder/shop.yaml" --analyst alice --epsilon 0.5 "
  SELECT region, count(*) AS customers, avg(age) AS mean_age
  FROM users JOIN countries USING (country) GROUP BY region ORDER BY customers DESC"

say 'How many orders, and how much money? One customer may have 40 of them, so that more noise is needed to hide one.'
run query --schema "$folder/shop.yaml" --analyst alice --epsilon 1 "
  SELECT region, count(*) AS orders, sum(amount) AS revenue
  FROM orders JOIN users USING (user_id) JOIN countries USING (country)
  GROUP BY region ORDER BY revenue DESC"

say 'Which products do most customers buy? Products are private: those of few customers stay hidden. Laplace noise adds up with what was paid before.'
run query --schema "$folder/shop.yaml" --analyst alice --epsilon 1 --noise laplace "
  SELECT product, count(DISTINCT user_id) AS customers
  FROM orders JOIN order_items USING (order_id)
  GROUP BY product ORDER BY customers DESC LIMIT 10"

say 'What would a question cost, and how far off would it be? Nothing is charged for asking that.'
run explain --schema "$folder/shop.yaml" --analyst alice --epsilon 0.25 "
  SELECT category, avg(amount) AS mean FROM orders JOIN categories USING (category) GROUP BY category"

run budget --schema "$folder/shop.yaml" --analyst alice
