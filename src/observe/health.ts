/** What one check found. `detail` says what is wrong and holds no address or secret. */
export type CheckResult = { readonly ok: true } | { readonly ok: false; readonly detail: string };

export interface HealthReport {
  readonly status: 'ready' | 'not-ready';
  readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly detail: string | null }[];
}

/** Ready when every check is well. No check at all is not ready: a process that looks at nothing knows nothing. */
export function evaluateHealth(results: Readonly<Record<string, CheckResult>>): HealthReport {
  const checks = Object.entries(results).map(([name, result]) => ({
    name,
    ok: result.ok,
    detail: result.ok ? null : result.detail,
  }));
  const ready = checks.length > 0 && checks.every(({ ok }) => ok);
  return { status: ready ? 'ready' : 'not-ready', checks };
}
