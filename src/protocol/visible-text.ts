/** Prepares texts for people: makes hidden characters visible, and says in a sentence why a command ended. */

// Makes hidden characters visible. Clients choose many of the texts that people read, so the texts may be meant to
// mislead.

/**
 * Matches characters that control a terminal, change the order of the characters around them, or are invisible: control
 * characters (C0, DEL, C1), characters that embed, override or isolate a direction, separators of lines and paragraphs,
 * and characters without a glyph. A joiner is matched only after one of these or after an ASCII character, where it
 * joins nothing; elsewhere scripts and emoji need it.
 */
const HIDDEN =
  /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}][\u200c\u200d]*|(?<![^\0-\x7f])[\u200c\u200d]+/gu;
/**
 * Matches texts of printable ASCII, tabs and line feeds, which contain no hidden characters. Most texts match, and this
 * pattern is faster than HIDDEN.
 */
const PLAIN = /^[\t\n\x20-\x7e]*$/;

/**
 * Replaces each hidden character by its code, such as `\u202e`, one for each UTF-16 unit. Line feeds and tabs stay.
 * JSON text without carriage returns remains JSON with the same value, because hidden characters can occur only in its
 * strings.
 */
export function visibleText(text: string): string {
  if (PLAIN.test(text)) return text;
  return text.replaceAll(HIDDEN, (found) => found.replaceAll(/[^\n\t]/g, codeOf));
}

/** Replaces hidden characters like `visibleText`, and replaces line feeds and tabs too. */
export function visibleLine(text: string): string {
  return visibleText(text).replaceAll(/[\n\t]/g, codeOf);
}

function codeOf(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

// Says in a sentence why a command ended.

const REASONS: Readonly<Record<string, string>> = {
  action_not_advertised: 'The client does not offer this action',
  approval_denied: 'Client refused: approval denied',
  arguments_invalid: 'Client refused: the arguments do not fit its schema',
  cancelled: 'Cancelled by its caller or an operator',
  capacity_exceeded: 'The scope had no room',
  client_denied: 'Client refused: its own rules deny it',
  client_timeout: 'The client gave up within its own time',
  connect_timeout: 'Client did not connect in time',
  context_gone: 'The named context was gone',
  context_unsupported: 'The client knows no places',
  draining: 'The node was being drained',
  handler_failed: 'The handler of the client failed',
  instance_mismatch: 'Another instance of the client was connected',
  instance_replaced: 'Another instance of the client took over',
  lease_busy: 'Client refused: the place is in use',
  node_lost: 'The node that held it was lost',
  not_connected: 'The client was not connected',
  not_received: 'It was lost on its way to the client; nothing ran',
  queue_timeout: 'It waited in the queue until its deadline',
  response_timeout: 'No answer came before the deadline',
  result_unavailable: 'The result could not be kept',
  runtime_disconnected: 'The client disconnected while it ran',
  too_late: 'Client refused: the time was over before it could start',
  unknown_action: 'The client does not know the action',
};

/** Matches the reason that the relay records for a cancel: `cancelled by user:alice`. */
const CANCELLED_BY = /^cancelled by (user|admin):(.+)$/;

/** Returns the sentence for a reason's code; the code itself if there is none. */
export function reasonText(code: string): string {
  const [, kind, name] = CANCELLED_BY.exec(code) ?? [];
  if (name !== undefined) return `Cancelled by ${kind === 'user' ? 'user' : 'administrator'} ${name}`;
  return REASONS[code.toLowerCase()] ?? code;
}
