// Runs modules with the reference implementations.
#include <unordered_map>

#include "ir/cancellation.hpp"
#include "ir/error.hpp"
#include "ir/loop_trips.hpp"
#include "ir/ops/structure.hpp"
#include "ir/program.hpp"

namespace kiln {
namespace {

std::vector<literal> run_if(const instruction& i, std::span<const literal> inputs, const kernel_runner& run_kernel) {
  const module& taken = *i.bodies()[inputs[0].at_int(0) ? 0 : 1];
  return evaluate(taken, inputs.subspan(1), run_kernel);
}

std::vector<literal> run_loop(const instruction& i, std::span<const literal> inputs, const kernel_runner& run_kernel) {
  const module& body = *i.bodies()[0];
  const auto& op = *i.op().get_if<loop>();
  auto carried = static_cast<std::size_t>(op.carried);
  std::size_t scans = i.outputs().size() - carried;
  std::int64_t trips = inputs[0].at_int(0);
  std::vector<literal> state(inputs.begin() + 1,
                             inputs.begin() + 2 + static_cast<std::ptrdiff_t>(carried));  // condition, carried...
  std::vector<std::vector<std::byte>> stacked(scans);
  std::int64_t done = 0;
  for (; done < trips && state[0].at_int(0); ++done) {
    check_stop();
    check_trips(done);
    std::vector<literal> arguments{literal::of<std::int64_t>({element_type::i64, {}}, {done})};
    arguments.insert(arguments.end(), state.begin(), state.end());
    arguments.insert(arguments.end(), inputs.begin() + 2 + static_cast<std::ptrdiff_t>(carried), inputs.end());
    auto outputs = evaluate(body, arguments, run_kernel);
    for (std::size_t s = 0; s < scans; ++s) {
      auto bytes = outputs[1 + carried + s].bytes();
      stacked[s].insert(stacked[s].end(), bytes.begin(), bytes.end());
    }
    outputs.resize(1 + carried);
    state = std::move(outputs);
  }
  if (const auto count = op.count(); scans && !(count == dim(done)))
    throw error(error_kind::unsupported, "a loop with scanned outputs stopped after " + std::to_string(done) + " of " +
                                             (count ? count->str() : "an unknown number of") + " trips");
  std::vector<literal> results(state.begin() + 1, state.end());
  for (std::size_t s = 0; s < scans; ++s) results.emplace_back(i.outputs()[carried + s], std::move(stacked[s]));
  return results;
}

std::vector<literal> run_operation(const instruction& i, std::span<const literal> inputs,
                                   const kernel_runner& run_kernel) {
  if (i.op().is<if_else>()) return run_if(i, inputs, run_kernel);
  if (i.op().is<loop>()) return run_loop(i, inputs, run_kernel);
  if (run_kernel && i.op().is<code_object>()) return run_kernel(i, inputs);
  return i.op().evaluate(inputs);
}

}  // namespace

std::vector<literal> evaluate(const module& m, std::span<const literal> inputs) { return evaluate(m, inputs, nullptr); }

std::vector<literal> evaluate(const module& m, std::span<const literal> inputs, const kernel_runner& run_kernel) {
  std::unordered_map<const instruction*, std::vector<literal>> results;
  // Remaining uses of each instruction, to free results early.
  std::unordered_map<const instruction*, std::size_t> remaining;
  for (const instruction& i : m.instructions()) remaining[&i] = i.users().size();
  for (value v : m.outputs()) ++remaining[v.producer];
  std::size_t next_input = 0;
  for (const instruction& i : m.instructions()) {
    if (const auto* p = i.op().get_if<parameter>()) {
      if (next_input >= inputs.size()) throw error(error_kind::usage, "no value for input '" + p->name_in_module + "'");
      const literal& given = inputs[next_input++];
      if (given.type() != i.outputs()[0])
        throw error(error_kind::usage, "input '" + p->name_in_module + "' is " + given.type().str() +
                                           ", the module expects " + i.outputs()[0].str());
      results[&i] = {given};
      continue;
    }
    std::vector<literal> arguments;
    for (value v : i.inputs()) arguments.push_back(results.at(v.producer)[v.index]);
    check_stop();
    results[&i] = run_operation(i, arguments, run_kernel);
    for (value v : i.inputs())
      if (--remaining[v.producer] == 0) results.erase(v.producer);
  }
  std::vector<literal> outputs;
  for (value v : m.outputs()) outputs.push_back(results.at(v.producer)[v.index]);
  return outputs;
}

}  // namespace kiln
