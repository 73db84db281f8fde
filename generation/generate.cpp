#include "generation/generate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ir/sequence_errors.hpp"

namespace kiln {
namespace {

constexpr std::int64_t default_new_tokens = 64;

// The number of steps. Throws if the context has no room for those that are asked for.
std::int64_t steps_of(const decoder& model, const id_rows& prompts, const generation_options& options) {
  std::size_t longest = 0;
  for (const auto& row : prompts) longest = std::max(longest, row.size());
  const std::int64_t begin = model.encodes_ids() ? 1 : static_cast<std::int64_t>(longest);
  const bool chosen = options.max_new_tokens > 0;
  const std::int64_t wanted = chosen ? options.max_new_tokens : default_new_tokens;
  if (!model.context()) return wanted;
  // The last id is an answer only; it takes no place.
  const std::int64_t room = *model.context() - begin + 1;
  if (chosen && wanted > room)
    throw error(context_full,
                fmt::format("context: a prompt of {} ids and {} new ones do not fit into {}; shorten the prompt, or "
                            "ask for fewer with --max-new-tokens",
                            begin, wanted, *model.context()));
  return std::clamp<std::int64_t>(room, 1, wanted);
}

bool is_stop(const generation_options& options, std::int64_t id) {
  return std::ranges::find(options.stop_ids, id) != options.stop_ids.end();
}

// Whether the device can choose all ids, and begin a step before the host knows the ids of the last one.
bool runs_ahead(const decoder& model, const id_rows& first, const sampling_options& sampling) {
  const auto same_length = [&](const auto& row) { return row.size() == first[0].size(); };
  return sampling.method == sampling_method::greedy && sampling.repetition_penalty == 1 && model.runs_ahead() &&
         std::ranges::all_of(first, same_length);
}

}  // namespace

id_rows generate(decoder& model, const id_rows& prompts, const generation_options& options,
                 const step_observer& observe) {
  const std::int64_t steps = steps_of(model, prompts, options);
  model.reset();
  id_rows next = prompts;
  if (model.has_encoder()) {
    model.encode(prompts, options.encoder_inputs);
    if (model.encodes_ids()) next.assign(prompts.size(), {options.decoder_start});
  }
  id_rows before = next, made(prompts.size());
  std::vector<sampler> samplers;
  for (std::size_t r = 0; r < prompts.size(); ++r) {
    sampling_options own = options.sampling;
    own.seed += r;
    samplers.emplace_back(own);
  }
  std::vector<bool> ended(prompts.size());
  const bool ahead = runs_ahead(model, next, options.sampling);
  bool started = false;
  for (std::int64_t step = 0; step < steps; ++step) {
    std::vector<float> logits;
    std::vector<std::int64_t> likeliest;
    if (ahead) {
      if (!started) model.start(next);
      // The second step may have to compile kernels, which the first answer should not wait for. After the first row
      // has ended, its ids are no longer those that the device finds.
      started = step > 0 && step + 1 < steps && std::ranges::none_of(ended, [](bool e) { return e; });
      if (started) model.go_on();
      likeliest = model.answer();
    } else {
      logits = model.append(next);
    }
    const std::size_t width = logits.size() / prompts.size();
    std::vector<std::int64_t> ids;
    for (std::size_t r = 0; r < prompts.size(); ++r) {
      // A row that has ended goes on with its last id, which nobody sees.
      if (ended[r]) {
        ids.push_back(-1);
        continue;
      }
      const std::int64_t id =
          ahead ? likeliest[r] : samplers[r].choose(std::span(logits).subspan(r * width, width), before[r]);
      ids.push_back(id), made[r].push_back(id), before[r].push_back(id);
      next[r] = {id};
      ended[r] = is_stop(options, id);
    }
    const bool goes_on = observe(ids);
    if (!goes_on || std::ranges::all_of(ended, [](bool e) { return e; })) break;
  }
  model.finish();
  return made;
}

}  // namespace kiln
