/**
 * Writes the generated part of docs/settings.md: all settings with their defaults and ranges, from the settings'
 * schema.
 */
import { z } from 'zod';
import { SHARE_BOUNDS, SHARE_NAMES } from '../../src/core/shares/share-bounds.ts';
import { DIRECT_ONLY, isSettingName, type SettingName, SETTINGS, SWITCHES } from '../../src/settings.ts';
import { FILE_SETTINGS } from '../../src/settings/setting-files.ts';
import { SETTINGS_OF_SHARE } from '../../src/settings/share-settings.ts';
import { amount } from './amounts.ts';
import { table } from './table.ts';
import { SETTING_TEXTS } from './texts.ts';

/**
 * Returns Markdown with one table for each group of settings, and a table for the shares, which limit what one user may
 * hold.
 */
export function settingsPart(): string {
  const groups = Object.entries(SETTING_TEXTS).map(([title, texts]) => {
    const rows = Object.entries(texts).map(([name, text]) => (isSettingName(name) ? settingRow(name, text) : []));
    return `## ${title}\n\n${table(['setting', 'default', 'values', 'what it does'], rows)}`;
  });
  return [...groups, `## Shares\n\n${sharesTable()}`].join('\n\n');
}

/** Returns the names of the settings that settingsPart describes. */
export function describedSettings(): readonly string[] {
  const own = Object.values(SETTING_TEXTS).flatMap((texts) => Object.keys(texts));
  return [...own, ...Object.values(SETTINGS_OF_SHARE).flatMap((pair) => pair.filter((name) => name !== null))];
}

function settingRow(name: SettingName, text: string): readonly string[] {
  const file = FILE_SETTINGS.includes(name) ? '; can be read from a file' : '';
  return [name, defaultOf(name), valuesOf(name), text + file];
}

function defaultOf(name: SettingName): string {
  const value: unknown = SETTINGS.shape[name].safeParse(undefined).data;
  if (SWITCHES.has(name)) return value === true ? 'on' : 'off';
  if (typeof value === 'number') return amount(name, value);
  return typeof value === 'string' && value !== '' ? `\`${value}\`` : 'none';
}

function valuesOf(name: SettingName): string {
  if (SWITCHES.has(name)) return 'on, off';
  const schema = z.toJSONSchema(SETTINGS.shape[name], { unrepresentable: 'any' });
  if (schema.enum) return schema.enum.map((value) => `\`${String(value)}\``).join(', ');
  const { minimum, maximum } = schema;
  if (minimum === undefined || maximum === undefined) return '';
  return `${amount(name, minimum)} to ${amount(name, maximum)}`;
}

function sharesTable(): string {
  const rows = SHARE_NAMES.map((share) => {
    const [guarantee, total] = SETTINGS_OF_SHARE[share];
    const bound = SHARE_BOUNDS[share];
    const mode = DIRECT_ONLY.includes(guarantee) ? 'direct' : 'both';
    const atMost = total === null || bound.total === null ? '' : `${total}: ${amount(total, bound.total)}`;
    return [`\`${share}\``, `${guarantee}: ${amount(guarantee, bound.guarantee)}`, atMost, mode];
  });
  return table(['share', 'guarantee of one user', 'total of all users', 'mode'], rows);
}
