// Words for docs/reference/config.md that the schema does not hold.

/** Meanings of keys that have no description in src/config/schema.ts. */
export const MEANINGS = {
  'Top level: queue.sentinel.name': 'name of the master that the Sentinels watch',
  'Top level: queue.sentinel.hosts':
    'Sentinels as host:port; queue.url then gives user, password and database',
  'Top level: queue.cluster': 'nodes of a Redis Cluster as host:port; queue.url then gives user and password',
  'Top level: queue.tls.ca': 'certificate authority of the server, as PEM text',
  'Top level: queue.tls.rejectUnauthorized': 'refuse a certificate that cannot be verified',
  'Top level: http.host': 'address that /healthz, /readyz and /metrics listen on',
  'Top level: http.port': 'their port; 0 takes any free one',
  'Top level: log.level':
    'lowest level of the log of `trueup up` and `trueup worker`; other commands log warnings',
  'A target: idempotency.header': 'HTTP header that carries the idempotency key',
  'A target: retry.attempts':
    'most attempts that count, the first included; failures of the target do not count',
  'A target: retry.wait.kind':
    'how the wait grows from attempt to attempt; `random` draws between base and cap',
  'A target: breaker.consecutive': 'failures of the target in a row that open the breaker',
  'A target: breaker.ratio': 'share of failures in 60 s that opens the breaker',
  'A target: breaker.minimum': 'outcomes in 60 s from which the share counts',
  'A reconciliation: schedule.gap':
    'a local time that a clock change leaves out: run right after the gap, or not at all',
  'A reconciliation: schedule.overlap': 'a local time that a clock change gives twice: which pass runs',
  'A reconciliation: schedule.missed':
    'slots that passed unclaimed: one run for all, a run for each, or only the latest',
  'A reconciliation: schedule.overlapping': 'what a slot does while an earlier scheduled run is not done',
  'A reconciliation: source': 'the side the work starts from',
  'A reconciliation: downstream': 'the side that should have received it',
  'A reconciliation: plan': 'how a window is read: see [plans](plans.md)',
  'A reconciliation: guard.maxDiffs': 'more diffs than this put the run on hold',
  'A reconciliation: guard.maxRatio': 'a larger share of the records of the larger side puts the run on hold',
  'A reconciliation: maxSuspects':
    'a reading stops with an error when more keys of one chunk are suspect or undecided',
  'A reconciliation: repair.missing': 'for records that only the source has',
  'A reconciliation: repair.mismatched':
    'for records that differ; of a list the first whose `when` holds is taken',
  'A reconciliation: repair.extra': 'for records that only the downstream has',
  'Side postgres: pageSize': 'records fetched or looked up at once',
  'Side mysql: pageSize': 'records taken at once; of keys at most 1000 are looked up by one statement',
  'Side http: lookup.method': 'HTTP method',
  'Side http: lookup.path': 'path after the target’s address; values are percent-encoded',
  'Side http: lookup.body': 'JSON body; a string that is one placeholder becomes its value',
  'Side http: list.method': 'HTTP method',
  'Side http: list.path': 'path after the target’s address; values are percent-encoded',
  'Side http: list.body': 'JSON body; a string that is one placeholder becomes its value',
  'Side http: time': 'JSON pointer to the record’s time',
  'Rule: precision': 'instant: cut both to this before comparing',
  'Rule: trim': 'text: without white space at the ends',
  'Rule: ignoreCase': 'text: in lower case',
  'Rule: unicode': 'text: in this Unicode form',
  'Repair: when.<name>.source': 'canonical texts that the source’s field may hold',
  'Repair: when.<name>.downstream': 'canonical texts that the downstream’s field may hold',
  'Repair: target': 'name of the target that is called',
  'Repair: action': 'what is called',
  'Repair: allowDelete': 'must be true for an action that deletes',
  'Repair: idempotency.template': 'what the idempotency key is made of, without `from`',
  'Repair: onNotTaken':
    'accepted and not visible within `verify.within`: to a person, or one more round under a new revision',
  'Action http: method': 'HTTP method',
  'Action http: path': 'path after the target’s address; values are percent-encoded',
  'Action http: body': 'JSON, or one string that is sent as it is; `{name|number}` makes a JSON number',
  'Action http: answers.retryable': 'surely did nothing; try again',
  'Action http: answers.unknown': 'may have worked; only a look can tell',
  'Action http: answers.fatal': 'refused for good; to a person',
  'Action module: input': 'given to the function, with the record’s values put in as exact texts',
  'Matcher: status': 'HTTP status is one of these',
  'Matcher: in': 'the value at `pointer` is one of these; left out: it exists',
  'Channel dingtalk: keyword': 'put before a text that lacks it, for robots that demand a keyword',
};

/** What holds besides the meaning; printed below the table. */
export const CAVEATS = {
  'A target: concurrency':
    'each worker counts for itself; how many rows go to the queue counts all workers that are alive.',
};
