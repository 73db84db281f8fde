// Everything that the bytes of a cache entry depend on. Never a path, a time or a pointer: two machines that would
// compile the same bytes make the same key.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/hash.hpp"
#include "ir/shape.hpp"
#include "mlir_bridge/kernel/kernel_configuration.hpp"

namespace kiln {

// (name, value) as text, in a fixed order; what an entry's header shows and `kiln cache explain` compares.
using key_fields = std::vector<std::pair<std::string, std::string>>;

struct kernel_key {
  std::string payload;                 // hex content hash of the portable kernel
  std::vector<shape> inputs, outputs;  // concrete
  kernel_configuration configuration;  // empty: the default one
  std::string target;                  // the target's whole description, not only its name
  std::string pipeline;                // version of the finalizer
  std::string llvm;                    // version of LLVM
  std::string driver;                  // version of the driver where it compiles, else empty
  std::string constants;               // prepared weights: what they were packed from; kernels: empty

  key_fields fields() const;
  content_hash hash() const;
};

// The hash that an entry with these fields has: every name and value length-prefixed.
content_hash hash_of(const key_fields& fields);
// The value of a field, "" where there is none.
std::string_view field(const key_fields& fields, std::string_view name);

}  // namespace kiln
