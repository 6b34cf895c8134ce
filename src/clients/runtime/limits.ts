/** Checks the keywords of JSON Schema that compare a value with a limit, and the formats of texts. */
import { isRecord } from '../../protocol/json.ts';

/** Whether a value meets the limit of a keyword. A keyword does not apply to values of other types. */
type Test = (value: unknown, limit: unknown) => boolean;
/** Returns the number that a keyword limits, such as a length; null if the keyword does not apply to the value. */
type Measure = (value: unknown) => number | null;

const itself: Measure = (value) => (typeof value === 'number' ? value : null);
/** The number of Unicode code points. */
const characters: Measure = (value) => (typeof value === 'string' ? [...value].length : null);
const items: Measure = (value) => (Array.isArray(value) ? value.length : null);
const members: Measure = (value) => (isRecord(value) ? Object.keys(value).length : null);

const atLeast =
  (measure: Measure): Test =>
  (value, limit) =>
    (measure(value) ?? Infinity) >= Number(limit);
const atMost =
  (measure: Measure): Test =>
  (value, limit) =>
    (measure(value) ?? -Infinity) <= Number(limit);

export const LIMITS: ReadonlyMap<string, Test> = new Map<string, Test>([
  ['type', (value, type) => [type].flat().some((name) => isOfType(value, name))],
  ['const', isEqual],
  ['enum', (value, choice) => partsOf(choice).some((one) => isEqual(value, one))],
  ['minimum', atLeast(itself)],
  ['maximum', atMost(itself)],
  ['exclusiveMinimum', (value, limit) => (itself(value) ?? Infinity) > Number(limit)],
  ['exclusiveMaximum', (value, limit) => (itself(value) ?? -Infinity) < Number(limit)],
  ['multipleOf', isMultiple],
  ['minLength', atLeast(characters)],
  ['maxLength', atMost(characters)],
  ['pattern', (value, pattern) => typeof value !== 'string' || new RegExp(String(pattern), 'u').test(value)],
  ['format', (value, name) => typeof value !== 'string' || (FORMATS.get(String(name))?.(value) ?? true)],
  ['minItems', atLeast(items)],
  ['maxItems', atMost(items)],
  ['uniqueItems', areUnique],
  ['minProperties', atLeast(members)],
  ['maxProperties', atMost(members)],
]);

export function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function isOfType(value: unknown, name: unknown): boolean {
  return name === typeOf(value) || (name === 'integer' && Number.isInteger(value));
}

function isMultiple(value: unknown, factor: unknown): boolean {
  const [number, by] = [itself(value) ?? 0, Number(factor)];
  // Fractions such as 0.1 are not exact in binary, so a small error is allowed.
  return number % by === 0 || Math.abs(number / by - Math.round(number / by)) < 1e-7;
}

function isEqual(one: unknown, other: unknown): boolean {
  return one === other || (one instanceof Object && other instanceof Object && canonical(one) === canonical(other));
}

/** Returns a JSON text that is equal for equal values: members of objects are sorted by name. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => {
    if (!isRecord(part)) return part;
    const names = Object.keys(part).toSorted();
    return Object.fromEntries(names.map((name) => [name, part[name]]));
  });
}

function areUnique(value: unknown, isOn: unknown): boolean {
  return !isOn || !Array.isArray(value) || new Set(value.map(canonical)).size === value.length;
}

/** Returns the items of a list, or the values of an object's members. */
export function partsOf(value: unknown): readonly unknown[] {
  return value instanceof Object ? Object.values(value) : [];
}

// The formats of texts. Callers choose the texts, so each check takes time that is at most quadratic in the length of
// the text.

/** Matches one label of a host name: letters, digits and hyphens. */
const LABEL = '[a-z\\d](?:[a-z\\d-]{0,61}[a-z\\d])?';
const HOSTNAME = new RegExp(`^(?=.{1,253}$)${LABEL}(?:\\.${LABEL})*$`, 'i');
const MAILBOX = /^(?!\.)(?!.*\.[.@])([\w.!#$%&'*+/=?^`{|}~-]{1,64})@([^@]+)$/;

const DATE = /^\d{4}-\d\d-\d\d$/;
/** The first group is the offset from UTC. */
const TIME = /^(?:(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d|23:59:60)(?:\.\d+)?(z|[+-]\d\d(?::?\d\d)?)?$/i;
/** Only the last number of a duration may have a fraction. */
const DURATION = durationForm('\\d+(?:[.,]\\d+)?');

const HEX = '[\\da-f]';
const ESCAPED = `%${HEX}{2}`;
/** PLAIN matches a character of a URI that is not a separator. IN_PATH matches one within a path. */
const PLAIN = `[\\w.~!$&'()*+,;=-]|${ESCAPED}`;
const IN_PATH = `${PLAIN}|[:@/]`;
/** The first group is the scheme, and the second an IPv6 address. */
const URI_REFERENCE = new RegExp(
  [
    '^([a-z][a-z\\d+.-]*:)?',
    `(?://(?:(?:${PLAIN}|:)*@)?(?:\\[(?:v${HEX}+\\.[^\\]/?#]+|([^\\]]*))\\]|(?:${PLAIN})*)(?::\\d*)?(?![^/?#])|(?!//))`,
    `(?:${IN_PATH})*(?:\\?(?:${IN_PATH}|\\?)*)?(?:#(?:${IN_PATH}|\\?)*)?$`,
  ].join(''),
  'i',
);
const VARIABLE = `(?:\\w|${ESCAPED})+(?::[1-9]\\d{0,3}|\\*)?`;
const URI_TEMPLATE = new RegExp(
  `^(?:[^\\x00-\\x20"'<>%\\\\^\`{|}]|${ESCAPED}|\\{[+#./;?&=,!@|]?${VARIABLE}(?:,${VARIABLE})*\\})*$`,
  'i',
);
const POINTER = '(?:/(?:[^~/]|~[01])*)*';

export const FORMATS: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ['date', isDate],
  ['time', (text) => TIME.test(text)],
  ['date-time', isDateTime],
  ['duration', matches(DURATION)],
  ['email', isEmail],
  ['hostname', (text) => HOSTNAME.test(text.replace(/\.$/, ''))],
  ['ipv4', matches(/^(?:(?:25[0-5]|2[0-4]\d|[01]?\d?\d)(?:\.(?!$)|$)){4}$/)],
  ['ipv6', isIpv6],
  ['uri', (text) => Boolean(schemeOf(text))],
  ['uri-reference', (text) => schemeOf(text) !== null],
  ['uri-template', matches(URI_TEMPLATE)],
  ['uuid', matches(new RegExp(`^(?:urn:uuid:)?${HEX}{8}-(?:${HEX}{4}-){3}${HEX}{12}$`, 'i'))],
  ['regex', isRegex],
  ['json-pointer', matches(new RegExp(`^${POINTER}$`))],
  ['json-pointer-uri-fragment', matches(new RegExp(`^#(?:/(?:[\\w.!$&'()*+,;:=@~-]|${ESCAPED})*)*$`, 'i'))],
  ['relative-json-pointer', matches(new RegExp(`^(?:0|[1-9]\\d*)(?:#|${POINTER})$`))],
]);

function matches(form: RegExp): (text: string) => boolean {
  return (text) => form.test(text);
}

function durationForm(number: string): RegExp {
  const [date, time] = ['YMD', 'HMS'].map((units) => units.replace(/./g, `(?:${number}$&)?`));
  return new RegExp(`^P(?!$)(?!.*[.,]\\d+[A-Z].)(?:${number}W|${date}(?:T(?=\\d)${time})?)$`);
}

function isDate(text: string): boolean {
  if (!DATE.test(text)) return false;
  const time = Date.parse(text);
  // A day that does not exist in its month would be read as a day of the next month.
  return Number.isFinite(time) && new Date(time).toISOString().startsWith(text);
}

function isDateTime(text: string): boolean {
  const [date = '', time = '', ...more] = text.split(/t|\s/i);
  return isDate(date) && TIME.exec(time)?.[1] !== undefined && more.length === 0;
}

function isEmail(text: string): boolean {
  return HOSTNAME.test(MAILBOX.exec(text)?.[2] ?? '');
}

function isIpv6(text: string): boolean {
  return /^[\da-f:.]+$/i.test(text) && URL.canParse(`http://[${text}]`);
}

/** Returns the scheme of a URI; empty for a relative reference; null if the text is neither. */
function schemeOf(text: string): string | null {
  const [found, scheme = '', address = '::'] = URI_REFERENCE.exec(text) ?? [];
  return found !== undefined && isIpv6(address) ? scheme : null;
}

function isRegex(text: string): boolean {
  try {
    return new RegExp(text, 'u') !== null;
  } catch {
    return false;
  }
}
