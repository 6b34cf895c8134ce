/** The types of a call of a built-in tool, and functions that read texts from its arguments. */
import type { Core } from '../core/core.ts';
import type { JsonText } from '../core/json.ts';
import type { AgentRequest } from './agent-request.ts';
import type { Calls } from './calls.ts';
import type { Catalog, CatalogView } from './catalog.ts';
import { refusal, type ToolResult } from './results.ts';

/** The services that built-in tools use. */
export type ToolServices = { readonly core: Core; readonly calls: Calls };

/** A call of a built-in tool. `tools`: returns the part of the user's catalog that the requester may see. */
export type BuiltinCall = {
  readonly name: string;
  readonly args: JsonText | null;
  readonly request: AgentRequest;
  readonly catalog: () => Promise<Catalog>;
  readonly tools: () => Promise<CatalogView>;
};

export type ToolArguments = Readonly<Record<string, unknown>>;
export type RunTool = (parts: ToolServices, call: BuiltinCall, given: ToolArguments) => Promise<ToolResult>;

/**
 * Whether a value is present and not a text. Null and an empty text count as absent, because models write them to mean
 * no value.
 */
export function isNoText(value: unknown): boolean {
  return value !== null && typeof value !== 'string';
}

export function textIn(given: ToolArguments, name: string): string | null {
  const value = given[name];
  return typeof value === 'string' && value !== '' ? value : null;
}

export function missing(name: string): ToolResult {
  return refusal('invalid_argument', `${name}: is required, as a text.`, 'Repeat the call with it.');
}
