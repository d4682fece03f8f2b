// Reads lists of UIMessages, one a line; writes the problems that the AI SDK finds in each, as a list, one a line.
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(pathToFileURL(process.argv[2] + '/'));
const { convertToModelMessages, validateUIMessages } = await import(pathToFileURL(require.resolve('ai')).href);
console.warn = console.info = () => {};
globalThis.AI_SDK_LOG_WARNINGS = false;

for await (const line of createInterface({ input: process.stdin })) {
  const problems = [];
  const messages = JSON.parse(line);
  try {
    await validateUIMessages({ messages });
    await convertToModelMessages(messages);
  } catch (error) {
    problems.push(String(error.cause?.message ?? error.message ?? error).slice(0, 400));
  }
  process.stdout.write(JSON.stringify(problems) + '\n');
}
