/** Finds the root fields of an operation. */
import { Kind, type DocumentNode, type SelectionSetNode } from 'graphql';

/**
 * Returns the names of an operation's root fields, including those of its fragments. The document need not be valid.
 */
export function rootFields(document: DocumentNode, root: SelectionSetNode): ReadonlySet<string> {
  const fields = new Set<string>();
  const seen = new Set<SelectionSetNode>();
  const collect = (set: SelectionSetNode): void => {
    if (seen.has(set)) return;
    seen.add(set);
    for (const selection of set.selections) {
      if (selection.kind === Kind.FIELD) fields.add(selection.name.value);
      else if (selection.kind === Kind.INLINE_FRAGMENT) collect(selection.selectionSet);
      else fragmentOf(document, selection.name.value).forEach(collect);
    }
  };
  collect(root);
  return fields;
}

function fragmentOf(document: DocumentNode, name: string): readonly SelectionSetNode[] {
  return document.definitions.flatMap((node) =>
    node.kind === Kind.FRAGMENT_DEFINITION && node.name.value === name ? [node.selectionSet] : [],
  );
}
