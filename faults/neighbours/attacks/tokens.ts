/** Lists the attacks with tokens and identities. */
import { freshToken } from '../site.ts';
import { type Attack, inLanes, openLink, pause, post } from './attack.ts';

/** The attacks that could make the relay take the attacker for another user. */
export const TOKENS: readonly Attack[] = [
  {
    name: 'bad-tokens',
    says: 'bad tokens over HTTP and links, from the same address as the honest user and the operator',
    async run(context) {
      const { site, count } = context;
      const good = await freshToken('hostile');
      const bad = (n: number): string =>
        n % 2 === 0 ? `wrong-${n}` : `${good.slice(0, -6)}${String(n).padStart(6, 'A')}`;
      const overHttp = inLanes(context, 2, async (n) => {
        const status = await post(site, n, { path: '/graphql', body: '{"query":"{ __typename }"}', token: bad(n) });
        count(`answers ${status}`);
        await pause(10);
      });
      const overLinks = inLanes(context, 2, async (n) => {
        await openLink(site, n, { token: bad(n) }).catch(() => count('links refused'));
        await pause(10);
      });
      await Promise.all([overHttp, overLinks]);
    },
  },
];
