import type { CrossProblem } from '../cross-problem.ts';
import { suggest } from '../nearest.ts';
import type { Config } from '../schema.ts';
import { checkAddress, HTTP } from './address.ts';

export function checkAlerts({ alerts }: Config): readonly CrossProblem[] {
  const names = Object.keys(alerts.channels);
  const unknown = (['warning', 'action'] as const).flatMap((severity) =>
    alerts[severity].flatMap((channel, at) =>
      names.includes(channel)
        ? []
        : [
            {
              path: ['alerts', severity, at],
              predicate: 'is no channel',
              hint: suggest(channel, names, 'channels'),
              showsValue: true as const,
              reads: [['alerts', 'channels', channel]],
            },
          ],
    ),
  );
  const link = alerts.link !== undefined && !/^https?:\/\//.test(alerts.link);
  return [
    ...unknown,
    ...Object.entries(alerts.channels).flatMap(([name, channel]) =>
      checkAddress(['alerts', 'channels', name, 'url'], channel.url, HTTP),
    ),
    ...(link
      ? [
          {
            path: ['alerts', 'link'],
            predicate: 'is no http(s):// address',
            hint: 'write https://host/…',
            showsValue: true as const,
          },
        ]
      : []),
  ];
}
