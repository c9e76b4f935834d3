#!/bin/sh
# From a CSV file to a private answer: draft a schema, complete it, check it, make the ledger, ask. sh examples/04_own_data.sh [FOLDER]
set -eu
folder=${1:-own}
mkdir -p "$folder"
cd "$folder"

# Visits to a library: a file as it might come out of any system.
[ -e visits.csv ] || awk 'BEGIN {
  srand(7); print "reader,day,branch,minutes"
  for (i = 0; i < 100000; i++) printf "%d,2024-%02d-%02d,%s,%d\n", 1 + int(10000 * rand()), 1 + int(12 * rand()), 1 + int(28 * rand()), \
    substr("NSEW", 1 + int(4 * rand()), 1), 5 + int(120 * rand() * rand())
}' > visits.csv

# The draft holds what the file's own types say. The owner adds whom a row belongs to, bounds, and budgets.
dpquery init visits.csv > draft.yaml
cat draft.yaml

cat > library.yaml <<'YAML'
dataset: library
privacy_unit: visits.reader
budget: {epsilon: 4, delta: 1e-6}
per_query: {epsilon: 0.5, delta: 1e-8}
contribution: {max_groups_contributed: 4, max_rows_per_group: 6}    # few readers come more often to one branch
tables:
  visits:
    path: visits.csv
    unit: reader
    columns:
      reader: {type: integer}
      day: {type: date}
      branch: {type: string, values: [N, S, E, W]}      # the four branches
      minutes: {type: integer, lower: 0, upper: 240}    # the gate closes a visit after four hours
YAML

dpquery check library.yaml
[ -e library.ledger ] || dpquery ledger create --schema library.yaml

dpquery query --schema library.yaml "
  SELECT branch, count(*) AS visits, avg(minutes) AS mean_stay FROM visits GROUP BY branch"
dpquery budget --schema library.yaml
