/** Tests which address a connection counts for, with and without a proxy. */
import { describe, expect, test } from 'vitest';
import { networkOf } from '../../src/web/forwarded.ts';

describe('the address that a peer is counted by', () => {
  test.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::6', '2001:db8:1:2::/64'],
    ['2001:0DB8:1:2:ffff::', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['unknown', 'unknown'],
    ['a:b', 'a:b'],
    ['::zz', '::zz'],
    ['1:2:3:4:5:6:7:8:9', '1:2:3:4:5:6:7:8:9'],
    ['', ''],
  ])('%s: %s', (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});
