/** Reads members of JSON values that may have any form. */

export function textMember(body: unknown, name: string): string | null {
  const value = memberOf(body, name);
  return typeof value === 'string' ? value : null;
}

export function memberOf(body: unknown, name: string): unknown {
  if (typeof body !== 'object' || body === null) return undefined;
  return Object.entries(body).find(([key]) => key === name)?.[1];
}
