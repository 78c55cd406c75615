#pragma once

namespace ferry {

/** Operations of a block that draw random numbers are numbered from 0 to below this, a family's
 * from 0 on and those of adapters from kAdapterSite on. */
inline constexpr int kRandomSites_max = 16;
inline constexpr int kAdapterSite = 8;

}  // namespace ferry
