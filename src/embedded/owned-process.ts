/**
 * A shell that owns the program given as its arguments: however node ends, its end of the shell's stdin closes,
 * `cat` ends and the program gets SIGINT, which is a fast shutdown for the server and a clean-up for initdb. The
 * first line on stdout is the program's process id; what it writes itself goes to stderr.
 */
export const OWN = `exec 3<&0
"$0" "$@" </dev/null 3<&- >&2 & program=$!
echo $program
(cat <&3 >/dev/null; kill -INT $program 2>/dev/null) & watch=$!
exec 3<&-
wait $program; status=$?
kill $watch 2>/dev/null
exit $status`;

/** The same for a program that lost its shell, given by its process id. */
export const ADOPT = 'cat >/dev/null; kill -INT "$0" 2>/dev/null';

const { PATH = '/usr/bin:/bin' } = process.env;
/** What PostgreSQL gets to see of the environment: nothing that could change its locale or time zone. */
export const SERVER_ENV = { PATH, LC_ALL: 'C', TZ: 'UTC' };
