/** Makes the log warnings about settings without effect, and about variables that are not settings. */
import { DIRECT_ONLY, JWKS_ONLY, PREFIX, SHARED_ONLY, isSettingName, type SettingName } from '../settings.ts';
import { settingOfFile } from '../settings/setting-files.ts';
import type { Environment, SettingText } from './setting-texts.ts';

export function warningsOf(env: Environment, given: ReadonlyMap<SettingName, SettingText>): string[] {
  const shared = given.has('REDIS_URL');
  const idle = (shared ? DIRECT_ONLY : SHARED_ONLY)
    .filter((name) => given.has(name))
    .map((name) => `${given.get(name)?.shownAs} has no effect ${shared ? 'with' : 'without'} ${PREFIX}REDIS_URL.`);
  // Not faults, because container platforms set such variables themselves: for example CALLBOARD_SERVICE_HOST for a
  // service called `callboard`.
  const strange = Object.keys(env)
    .filter((key) => key.startsWith(PREFIX) && !isSettingName(key.slice(PREFIX.length)))
    .filter((key) => settingOfFile(key.slice(PREFIX.length)) === null)
    .map((key) => `${key} is not a setting and was ignored.`);
  const unread = given.has('JWKS_URL') ? [] : JWKS_ONLY.filter((name) => given.has(name));
  const without = unread.map((name) => `${given.get(name)?.shownAs} has no effect without ${PREFIX}JWKS_URL.`);
  return [...idle, ...without, ...strange];
}
