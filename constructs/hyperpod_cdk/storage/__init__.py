"""FSx for Lustre and S3, and the volume claims of teams on them."""
