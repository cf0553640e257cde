#!/usr/bin/env bash
# A check that looks at nothing passes; so plant what the import rules must catch, and demand that they do.
set -euo pipefail
cd "$(dirname "$0")/.."
planted=src/reconcile/value/planted-violation.ts
trap 'rm -f "$planted"' EXIT
cat > "$planted" <<'TS'
import { readFileSync } from 'node:fs';
import { openDatabase } from '../../store/database.ts';

export const planted = [readFileSync, openDatabase];
TS
output=$(npx biome lint "$planted" 2>&1) && { echo 'the planted violation was not caught'; exit 1; }
for expected in 'this file is pure' 'may not import this layer'; do
  grep -q "$expected" <<< "$output" || { echo "not caught: $expected"; exit 1; }
done
echo 'both planted violations were caught'
