// Preloaded by tests: makes this process look like an older Node.
Object.defineProperty(process.versions, 'node', { value: '20.20.2' });
