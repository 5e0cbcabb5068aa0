mooring simulate --nodes 3xm5.xlarge,zones=3 -f shop
mooring capacity --nodes 3xm5.2xlarge,zones=3 --pod shop
