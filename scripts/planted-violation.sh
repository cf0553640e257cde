#!/usr/bin/env bash
# A check that looks at nothing passes; so plant what the import rules must catch, and demand that they do.
set -euo pipefail
cd "$(dirname "$0")/.."
planted=src/reconcile/value/planted-violation.ts
wired=src/store/planted-violation.ts
wiring=src/app/planted-violation.ts
trap 'rm -f "$planted" "$wired" "$wiring"' EXIT
cat > "$planted" <<'TS'
import { readFileSync } from 'node:fs';
import { openDatabase } from '../../store/database.ts';

export const planted = [readFileSync, openDatabase];
TS
cat > "$wired" <<'TS'
import { openStore } from '../app.ts';
import { Routes } from '../app/routes.ts';
import { say } from '../cli/output.ts';

export const planted = [openStore, Routes, say];
TS
cat > "$wiring" <<'TS'
import { say } from '../cli/output.ts';

export const planted = say;
TS
output=$(npx biome lint "$planted" 2>&1) && { echo 'the planted violation was not caught'; exit 1; }
for expected in 'this file is pure' 'may not import this layer'; do
  grep -q "$expected" <<< "$output" || { echo "not caught: $expected"; exit 1; }
done

# Each of the three imports by itself: the wiring is one file and one folder.
output=$(npx biome lint "$wired" 2>&1) && { echo 'an import of the wiring was not caught'; exit 1; }
caught=$(grep -c 'src/store may not import this layer' <<< "$output") || true
[ "$caught" -eq 3 ] || { echo "$caught of 3 imports of the wiring and the commands were caught"; exit 1; }
output=$(npx biome lint "$wiring" 2>&1) && { echo 'a command in the wiring was not caught'; exit 1; }
grep -q 'it knows no command' <<< "$output" || { echo 'not caught: a command in the wiring'; exit 1; }
echo 'all planted violations were caught'
