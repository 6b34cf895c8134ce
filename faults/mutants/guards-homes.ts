/** Lists mutants of homes: of where links and partitions go, of what they leave, and of the order of a client's links. */
import type { GuardMutant } from './mutant.ts';

const LINK = { file: 'clients/link/link.ts', judge: { test: 'test/clients/homes.test.ts' } } as const;
const NAMES = { file: 'backends/owned/open.ts', judge: { test: 'test/backends/owned-homes.test.ts' } } as const;
const PLACES = {
  file: 'backends/owned/placement.ts',
  judge: { test: 'test/backends/owned-placement.test.ts' },
} as const;
const ORDER = { test: 'test/core/hello-order.test.ts' };

/** The guard mutants of homes. */
export const HOMES_GUARDS: readonly GuardMutant[] = [
  {
    name: 'home-of-any-host',
    says: 'a link takes its token to a host that the program did not name',
    find: 'return isSafe && hosts.some((pattern) => pattern.test(host));',
    replace: 'return isSafe;',
    ...LINK,
  },
  {
    name: 'home-of-a-longer-name',
    says: 'a pattern of hosts matches a part of a name',
    find: '`^${host.replace(',
    replace: '`${host.replace(',
    ...LINK,
  },
  {
    name: 'home-without-tls',
    says: 'a link goes from TLS to an address without',
    find: " || (protocol === 'ws:' && new URL(from).protocol === protocol)",
    replace: " || protocol === 'ws:'",
    ...LINK,
  },
  {
    name: 'left-socket-heard',
    says: 'a client runs what arrives over a socket after it has said what arrived over it',
    find: '    this.#session?.leave();\n',
    replace: '',
    ...LINK,
  },
  {
    name: 'left-socket-closed-early',
    says: 'a client counts as disconnected before its home has welcomed it',
    find: '    this.#session?.leave();\n',
    replace: "    this.#session?.close('');\n",
    ...LINK,
  },
  {
    name: 'left-socket-kept',
    says: 'the socket that was left for a home stays open',
    find: '    this.#left = this.#session;\n',
    replace: '',
    ...LINK,
  },
  {
    name: 'home-tried-without-pause',
    says: 'a home that cannot be reached is tried again without a longer pause',
    find: '      this.#next = null;\n      this.#failedHomes++;\n',
    replace: '      this.#next = null;\n',
    ...LINK,
  },
  {
    name: 'home-ends-the-link',
    says: 'a relay of another deployment that is named as a home ends the link for good',
    find: "if (this.#home !== null && this.#status.state === 'connecting') {",
    replace: 'if (false) {',
    ...LINK,
  },
  {
    name: 'homes-in-a-circle',
    says: 'homes that name each other send a link around',
    find: 'else if (this.#home !== null) this.#failedHomes++;',
    replace: 'else if (this.#home !== null) this.#failedHomes = 0;',
    ...LINK,
  },
  {
    name: 'home-of-a-lost-link',
    says: 'a socket to a home is used although the link has ended meanwhile',
    find: '    this.#session = null;\n    this.#stopSeeking();\n',
    replace: '    this.#session = null;\n',
    ...LINK,
  },
  {
    name: 'home-while-leaving',
    says: 'a client that leaves connects to its home',
    find: '    this.#stays = true;\n',
    replace: '',
    ...LINK,
  },
  {
    name: 'home-of-a-draining-relay',
    says: 'links are sent to a relay that takes none',
    find: 'lease.address = isDraining ? null : address;',
    replace: 'lease.address = address;',
    ...NAMES,
  },
  {
    name: 'moved-home-untold',
    says: 'links are not told when another relay begins to own their users',
    find: '    onAddress: (other) => homesMoved((userId) => owners.ownerOf(placement.ofUser(userId))?.process === other),\n',
    replace: '    onAddress() {},\n',
    ...NAMES,
  },
  {
    name: 'home-at-itself',
    says: 'a relay names itself as the home of its users',
    file: 'backends/owned/owner.ts',
    find: 'return process === this.#options.process ? null : (this.#addresses.get(process) ?? null);',
    replace: 'return this.#addresses.get(process) ?? null;',
    judge: NAMES.judge,
  },
  {
    name: 'moves-beyond-the-share',
    says: 'a relay with all links owns all partitions',
    find: 'nearest !== owner && hasShareFor(nearest, view)',
    replace: 'nearest !== owner',
    ...PLACES,
  },
  {
    name: 'stays-beyond-the-share',
    says: 'a relay keeps more than its share because of links',
    find: ' && ownedBy(owner, view) <= mostOwned(view);',
    replace: ';',
    ...PLACES,
  },
  {
    name: 'taken-beyond-the-share',
    says: 'a relay takes more than its share from several others at a time',
    find: ' || hasShareFor(process, view);',
    replace: ' || true;',
    ...PLACES,
  },
  {
    name: 'moves-at-once',
    says: 'a partition follows links that stay for a moment only',
    find: 'now - wish.since >= SETTLED_LEASES * leaseMs && ',
    replace: '',
    ...PLACES,
  },
  {
    name: 'moves-without-pace',
    says: 'all partitions of a relay move to their links at a time',
    find: ' && now - this.#movedAt >= PACE_LEASES * leaseMs;',
    replace: ';',
    ...PLACES,
  },
  {
    name: 'moves-back-and-forth',
    says: 'a partition moves back as soon as a few of its links have gone',
    find: "const stays = isNear(owner, 'stays')",
    replace: "const stays = isNear(owner, 'moves')",
    ...PLACES,
  },
  {
    name: 'ended-page-replaces-the-next',
    says: 'the hello of a page that ended, which waited for the store, replaces the page after it',
    file: 'core/connections/hello-order.ts',
    find: 'return ms > 0 && ms <= HELLO_WAIT_MS;',
    replace: 'return false;',
    judge: ORDER,
  },
  {
    name: 'stepped-clock-locks-out',
    says: 'a clock that was set back keeps the next instances of clients out for as long',
    file: 'core/connections/hello-order.ts',
    find: ' && ms <= HELLO_WAIT_MS;',
    replace: ';',
    judge: ORDER,
  },
  {
    name: 'hello-without-time',
    says: 'the store does not learn when a hello was read',
    file: 'core/commands/link-session.ts',
    find: '          helloAt,\n',
    replace: '',
    judge: ORDER,
  },
];
