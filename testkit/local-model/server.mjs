// A small model on this machine behind the part of Chat Completions that our tests use, streamed.
//   node server.mjs MODEL.gguf PORT     (0 = any free one; it prints its address)
import http from "node:http";
import path from "node:path";
import { getLlama, LlamaChatSession } from "node-llama-cpp";

const [modelPath, port] = process.argv.slice(2);
const name = path.basename(modelPath, ".gguf");
// One thread: with two on two busy cores the threads wait for each other, and a second becomes a minute.
const llama = await getLlama({ gpu: false, build: "never", skipDownload: true, maxThreads: 1, logLevel: "error" });
const model = await llama.loadModel({ modelPath });
const context = await model.createContext({ contextSize: 2048, threads: 1 });

const grammars = {
  json_schema: (format) => llama.createGrammarForJsonSchema(format.json_schema.schema),
  json_object: () => llama.getGrammarFor("json"),
  text: () => undefined,
};

async function complete(body, say, signal) {
  const text = (role) => body.messages.filter((message) => message.role === role).map((message) => message.content);
  const [systemPrompt, prompt] = [text("system").join("\n\n"), text("user").join("\n\n")];
  if (model.tokenize(systemPrompt + prompt).length > context.contextSize / 2)
    throw Object.assign(new Error("the prompt is too long for the context size"), { status: 400, code: "context_length_exceeded" });
  const format = body.response_format ?? { type: "text" };
  const grammar = await grammars[format.type]?.(format);
  const sequence = context.getSequence();
  const session = new LlamaChatSession({ contextSequence: sequence, systemPrompt: systemPrompt || undefined });
  try {
    const answer = await session.promptWithMeta(prompt, {
      grammar, signal, stopOnAbortSignal: true, maxTokens: body.max_tokens ?? 512, temperature: body.temperature ?? 0,
      onTextChunk: (content) => say({ choices: [{ index: 0, delta: { content }, finish_reason: null }] }),
    });
    say({ choices: [{ index: 0, delta: {}, finish_reason: answer.stopReason === "maxTokens" ? "length" : "stop" }] });
    const { usedInputTokens: prompt_tokens, usedOutputTokens: completion_tokens } = sequence.tokenMeter.getState();
    say({ choices: [], usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens } });
  } finally {
    session.dispose();
    sequence.dispose();
  }
}

let last = Promise.resolve(); // one ask at a time: there is one thread
const server = http.createServer(async (request, response) => {
  const fail = ({ status = 500, message, code = null }) =>
    response.headersSent
      ? response.end(`data: ${JSON.stringify({ error: { message, code } })}\n\n`)
      : response.writeHead(status).end(JSON.stringify({ error: { message, code } }));
  if (request.url === "/v1/models") return response.end(JSON.stringify({ object: "list", data: [{ id: name, object: "model" }] }));
  if (request.url !== "/v1/chat/completions") return fail({ status: 404, message: `no ${request.url} here` });
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  const say = (chunk) => {
    if (!response.headersSent) response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write(`data: ${JSON.stringify({ id: "local", object: "chat.completion.chunk", model: name, ...chunk })}\n\n`);
  };
  try {
    const body = JSON.parse(Buffer.concat(await request.toArray()));
    last = last.catch(() => {}).then(() => complete(body, say, gone.signal));
    await last;
    response.end("data: [DONE]\n\n");
  } catch (error) {
    fail(error);
  }
});
server.listen(Number(port), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/v1`));
