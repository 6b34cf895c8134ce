/** Defines the type of a tool, and names the tool of an action. */
import { hash } from 'node:crypto';
import { AGENT_TOOL_NAME_CHARS } from '../core/limits.ts';

/** A tool as `tools/list` returns it. */
export type Tool = {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  readonly inputSchema: { readonly type: 'object' } & Readonly<Record<string, unknown>>;
  readonly annotations: {
    readonly readOnlyHint: boolean;
    readonly destructiveHint: boolean;
    readonly idempotentHint: boolean;
    readonly openWorldHint: boolean;
  };
};

// Names of tools.

/** Returns the name of an action's tool. `isTaken`: whether another tool has, or could get, this name. */
export function toolName(action: string, isTaken: (plain: string) => boolean): string {
  const plain = plainName(action);
  if (plain.length <= AGENT_TOOL_NAME_CHARS && !isTaken(plain)) return plain;
  const digest = hash('sha256', action, 'hex').slice(0, DIGEST_CHARS);
  return `${plain.slice(0, AGENT_TOOL_NAME_CHARS - DIGEST_CHARS - 1)}_${digest}`;
}

const DIGEST_CHARS = 6;

export function plainName(action: string): string {
  return action.replaceAll(/[^A-Za-z0-9_]/g, '_');
}
