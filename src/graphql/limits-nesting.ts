import { GraphQLError, Lexer, Source, TokenKind } from 'graphql';

const OPENS: ReadonlySet<string> = new Set([TokenKind.BRACE_L, TokenKind.BRACKET_L, TokenKind.PAREN_L]);
const CLOSES: ReadonlySet<string> = new Set([TokenKind.BRACE_R, TokenKind.BRACKET_R, TokenKind.PAREN_R]);

/**
 * Whether braces, brackets and parentheses are nested deeper than `most` within the first `tokens` tokens. Asked before a document is
 * parsed, because the parser calls itself for each of them and would run out of stack. False where the text stops being GraphQL before:
 * the parser stops there too, and says why.
 */
export function isNestedDeeper(source: string | Source, most: number, tokens: number): boolean {
  const lexer = new Lexer(typeof source === 'string' ? new Source(source) : source);
  let depth = 0;
  try {
    for (let seen = 0; seen <= tokens; seen++) {
      const { kind } = lexer.advance();
      if (kind === TokenKind.EOF) return false;
      if (OPENS.has(kind)) depth++;
      else if (CLOSES.has(kind)) depth--;
      if (depth > most) return true;
    }
    return false;
  } catch (error) {
    if (error instanceof GraphQLError) return false;
    throw error;
  }
}
