// For messages about a name that somebody has misspelt. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kiln {

// The name of `known` that `wrong` was probably meant to be: the one with the fewest insertions, deletions,
// substitutions and swaps of neighbours (the first of several), "" where even that one is too far away.
std::string_view nearest_name(std::string_view wrong, std::span<const std::string_view> known);

// "; did you mean 'NAME'?" for the end of a message, "" where no name is near.
std::string did_you_mean(std::string_view wrong, std::span<const std::string_view> known);

}  // namespace kiln
