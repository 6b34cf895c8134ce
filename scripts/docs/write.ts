/** `npm run docs` writes the generated parts of the documentation. */
import { writeFileSync } from 'node:fs';
import { generatedPages } from './pages.ts';

for (const { file, text } of generatedPages()) writeFileSync(file, text);
