/** Tests that equal lists of actions are parsed once and held once, within bounds. */
import { describe, expect, test } from 'vitest';
import { ActionLists, readAdvertisement } from '../../src/gateway/payloads.ts';

const payload = (name: string, rest = ''): string =>
  `{"metadata":{"tab":"${name}"},"actions":[{"name":"open"}${rest}]}`;

describe('lists of actions', () => {
  test('are one object for all clients that advertise the same text, whatever their metadata', () => {
    const lists = new ActionLists();
    const [first, second] = [readAdvertisement(payload('a'), lists), readAdvertisement(payload('b'), lists)];
    expect(second.actions).toBe(first.actions);
    expect([first.metadata, second.metadata]).toEqual(['{"tab":"a"}', '{"tab":"b"}']);
    expect(readAdvertisement(payload('a', ',{"name":"close"}'), lists).actions).toHaveLength(2);
    expect(lists.size).toBe(2);
  });

  test('are not remembered if they are refused', () => {
    const lists = new ActionLists();
    const twice = payload('a', ',{"name":"open"}');
    for (let i = 0; i < 2; i++) expect(() => readAdvertisement(twice, lists)).toThrow('open appears twice');
    expect(lists.size).toBe(0);
  });

  test('are forgotten beyond 64, the one that was used longest ago first', () => {
    const lists = new ActionLists();
    const read = (i: number) => readAdvertisement(`{"actions":[{"name":"a${i}"}]}`, lists).actions;
    const first = read(0);
    const second = read(1);
    for (let i = 2; i < 64; i++) read(i);
    expect(read(0)).toBe(first);
    read(64);
    expect(lists.size).toBe(64);
    expect(read(0)).toBe(first);
    expect(read(1)).not.toBe(second);
  });

  test('of a payload of more than 65,536 characters are parsed each time', () => {
    const lists = new ActionLists();
    const large = `{"other":"${'x'.repeat(65_536)}","actions":[{"name":"open"}]}`;
    expect(readAdvertisement(large, lists).actions).toHaveLength(1);
    expect(lists.size).toBe(0);
  });
});
