/** Tests to whom the use of bounded resources is counted. */
import { describe, expect, it } from 'vitest';
import type { Principal } from '../../src/core/auth/principal.ts';
import { holderOf } from '../../src/core/shares/holder.ts';
import { createShares } from '../../src/core/shares/shares.ts';

let grants = 0;
const viewerOf = (ownerId: string): Principal => {
  const id = `g${grants++}`;
  return { kind: 'grant', sessionId: `of-${ownerId}-${id}`, grantId: id, ownerId, expiresAt: 1 };
};

describe('the viewers of a site', () => {
  it('are counted for the owner of the site: those of other owners, and the owner, still have their guarantee', () => {
    const shares = createShares({ requests: { guarantee: 4, total: 64 } });
    const claim = (principal: Principal): void => shares.of(holderOf(principal)).claim('requests', 1);
    // Each viewer has a grant of its own, which gives no guarantee of its own.
    const flood = (): void => {
      for (let requests = 0; requests < 100; requests++) claim(viewerOf('mallory'));
    };
    expect(flood).toThrow('You hold more than your share');
    expect(shares.used('requests')).toBe(48);
    for (let requests = 0; requests < 4; requests++) claim(viewerOf('bob'));
    for (let requests = 0; requests < 4; requests++)
      claim({ kind: 'user', userId: 'mallory', scopes: new Set(), expiresAt: null });
    expect(() => claim(viewerOf('mallory'))).toThrow('You hold more than your share');
  });
});
