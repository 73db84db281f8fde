// A graph pass: any value struct with `std::string_view name() const` and `bool apply(module&) const` or `bool
// apply(program&) const`, which returns whether it changed anything. Passes hold options only, so one value may be
// applied to many programs and from many threads. A program belongs to one thread while a pass runs. A pass leaves
// alone what it does not understand; it throws only error{internal}, for a broken invariant.
#pragma once

#include <concepts>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.hpp"

namespace kiln {

template <class Pass>
concept module_pass = requires(const Pass& pass, module& m) {
  { pass.name() } -> std::convertible_to<std::string_view>;
  { pass.apply(m) } -> std::same_as<bool>;
};

template <class Pass>
concept program_pass = requires(const Pass& pass, program& p) {
  { pass.name() } -> std::convertible_to<std::string_view>;
  { pass.apply(p) } -> std::same_as<bool>;
};

class pass {
 public:
  template <class Pass>
    requires(module_pass<Pass> || program_pass<Pass>)
  pass(Pass p) : name_(p.name()) {
    if constexpr (requires { p.inner_names(); }) inner_ = p.inner_names();
    apply_ = [p = std::move(p)](program& target) {
      if constexpr (program_pass<Pass>) {
        return p.apply(target);
      } else {
        bool changed = false;
        for (module& m : target.modules()) changed |= p.apply(m);
        return changed;
      }
    };
  }
  const std::string& name() const { return name_; }
  // Returns the names of the passes that this pass runs; empty for most passes.
  const std::vector<std::string>& inner() const { return inner_; }
  bool apply(program& target) const { return apply_(target); }

 private:
  std::string name_;
  std::vector<std::string> inner_;
  std::function<bool(program&)> apply_;
};

// Applies its passes in order and repeats until none changes anything, at most `rounds` times.
struct until_stable {
  std::string label;
  std::vector<pass> passes;
  int rounds = 12;

  std::string_view name() const { return label; }
  std::vector<std::string> inner_names() const;
  bool apply(program& p) const;
};

// Applies a pass and, if it changed anything, others in order. Has the name of the former.
struct with_cleanup {
  pass first;
  std::vector<pass> others;

  std::string_view name() const { return first.name(); }
  std::vector<std::string> inner_names() const;
  bool apply(program& p) const;
};

// Applies the passes in order. If `dump_dir` is not empty, writes the program's text before the first pass and after
// each pass to NN_name.txt in it; throws error{io} if that fails.
void run_passes(program& p, const std::vector<pass>& passes, const std::filesystem::path& dump_dir = {});

}  // namespace kiln
