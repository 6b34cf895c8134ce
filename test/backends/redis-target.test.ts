/** Tests the address of Redis: its forms, and the messages about invalid ones. */
import { describe, expect, it } from 'vitest';
import { describeTarget, readTarget, secretsOf, targetFault } from '../../src/backends/redis/target.ts';

const NOBODY = { username: null, password: null };

describe('the address of Redis', () => {
  it('is one Redis, with its database and its login', () => {
    expect(readTarget('redis://localhost')).toEqual({
      form: 'single',
      at: { host: 'localhost', port: 6379 },
      login: NOBODY,
      tls: false,
      db: 0,
    });
    expect(readTarget('rediss://me:p%40ss%2F@[::1]:7000/3')).toEqual({
      form: 'single',
      at: { host: '::1', port: 7000 },
      login: { username: 'me', password: 'p@ss/' },
      tls: true,
      db: 3,
    });
    expect(readTarget('unix://me:p%40ss@/run/redis/redis.sock?db=2')).toEqual({
      form: 'single',
      at: { path: '/run/redis/redis.sock' },
      login: { username: 'me', password: 'p@ss' },
      tls: false,
      db: 2,
    });
    expect(describeTarget(readTarget('unix:/run/redis.sock'))).toBe('unix:///run/redis.sock');
    expect(targetFault('unix:run/redis.sock')).toContain('absolute path');
    expect(readTarget('redis://:only@h')).toMatchObject({ login: { username: null, password: 'only' } });
  });

  it('is the master that sentinels name, with a login of their own', () => {
    const target = readTarget('redis+sentinel://u:a@s1:1,s2/main?db=2&sentinel_password=b');
    expect(target).toEqual({
      form: 'sentinel',
      sentinels: [
        { host: 's1', port: 1 },
        { host: 's2', port: 26_379 },
      ],
      master: 'main',
      login: { username: 'u', password: 'a' },
      sentinelLogin: { username: null, password: 'b' },
      tls: false,
      db: 2,
    });
    expect(secretsOf(target)).toEqual(['a', 'b']);
  });

  it('is a cluster, reached through any of its nodes', () => {
    expect(readTarget('rediss+cluster://:x@c1:7001,c2:7002')).toEqual({
      form: 'cluster',
      nodes: [
        { host: 'c1', port: 7001 },
        { host: 'c2', port: 7002 },
      ],
      login: { username: null, password: 'x' },
      tls: true,
    });
  });

  it.each([
    ['http://:hunter2@h', 'expected redis://'],
    ['hunter2', 'expected redis://'],
    ['redis://:hunter2@a:1,b:2', 'one host'],
    ['redis://:hunter2@h/x', 'a database is a number'],
    ['redis://:hunter2@h:99999', 'a port'],
    ['redis://:hunter2@h:0', 'a port'],
    ['redis://:hunter2@', 'a host cannot be read'],
    ['redis://:hunter2/4@h', 'a host cannot be read'],
    ['redis://:hunter2%zz@h', 'percent-encoded'],
    ['redis://h?password=hunter2', 'no parameters'],
    ['redis+sentinel://:hunter2@h', 'the name of the master'],
    ['redis+sentinel://:hunter2@h/m?pass=hunter2', 'the parameters are'],
    ['redis+cluster://:hunter2@h/1', 'a cluster has no path'],
    ['redis+cluster://:hunter2@h,,i', 'a host cannot be read'],
  ])('is refused with a message that repeats none of it: %s', (text, words) => {
    expect(targetFault(text)).toContain(words);
    expect(targetFault(text)).not.toContain('hunter2');
  });

  it('is logged without credentials', () => {
    for (const [text, shown] of [
      ['redis://me:hunter2@h:1/2', 'redis://h:1/2'],
      ['rediss+sentinel://me:hunter2@a,b:2/main?sentinel_password=hunter2', 'rediss+sentinel://a:26379,b:2/main'],
      ['redis+cluster://me:hunter2@a:1,b:2', 'redis+cluster://a:1,b:2'],
    ] as const)
      expect(describeTarget(readTarget(text))).toBe(shown);
  });
});
